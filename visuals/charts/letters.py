"""Letters beside points, and what is done where they would be printed over each other. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from visuals.charts.theme import Row

NEAR = (0.04, 0.07)  # of the width and of the height: about a letter's size in these charts


def letter_rows(
    rows: Sequence[Row],
    fields: tuple[str, str],
    *,
    is_log: bool = False,
    to_zero: bool = False,
    frame: Sequence[Row] = (),
) -> list[Row]:
    """Return the rows with a ``text``: one for each place, with the letters of all points there.

    The letters stand to the right of a point: of several they are given to the rightmost.

    Args:
        rows: Points with a ``label``.
        fields: Names of the field across and of the one upwards.
        is_log: Both axes are logarithmic, and go from one power of ten to another.
        to_zero: The upward axis begins at zero.
        frame: What else the chart has room for.
    """
    x, y = fields
    known = [row for row in rows if row[x] is not None and row[y] is not None]
    places = [(_place(row[x], is_log=is_log), _place(row[y], is_log=is_log)) for row in known]
    around = [(_place(row[x], is_log=is_log), _place(row[y], is_log=is_log)) for row in frame]
    shown = [*places, *around]
    across = _extent([place[0] for place in shown], is_log=is_log)
    upwards = _extent([place[1] for place in shown] + ([0.0] if to_zero else []), is_log=is_log)
    kept: list[int] = []
    texts: dict[int, list[str]] = {}
    rightmost: dict[int, int] = {}
    for index, (row, place) in enumerate(zip(known, places, strict=True)):
        near = (one for one in kept if _is_near(place, places[one], (across, upwards)))
        home = next(near, None)
        if home is None:
            kept.append(index)
            home = index
        label = str(row["label"])
        if label not in texts.setdefault(home, []):
            texts[home].append(label)
        rightmost[home] = max(rightmost.get(home, index), index, key=lambda one: places[one][0])
    return [{**known[rightmost[home]], "text": ", ".join(texts[home])} for home in kept]


def _is_near(
    one: tuple[float, float], other: tuple[float, float], extents: tuple[float, float]
) -> bool:
    pairs = zip(one, other, extents, NEAR, strict=True)
    return all(abs(a - b) <= near * extent for a, b, extent, near in pairs)


def _place(value: object, *, is_log: bool) -> float:
    number = float(value) if isinstance(value, (int, float)) else 0.0
    return log10(max(number, 1e-30)) if is_log else number


def _extent(values: Sequence[float], *, is_log: bool) -> float:
    if not values:
        return 0.0
    return ceil(max(values)) - floor(min(values)) if is_log else max(values) - min(values)
