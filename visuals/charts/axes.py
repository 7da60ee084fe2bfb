"""Axes that grow in steps instead of twitching, and histories thinned to what a chart can show.

The live panel thins its growing histories by the same rules (``visuals/panel/scripts/axes.js``).
No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10
from statistics import median

from visuals.charts.theme import Cell, Row

MAX_ROWS = 800
MAX_BARS = 200  # about as many as a chart has room for
LEAST_VALUES = 10
OUTLIER_RATIO = 4.0


def axis_end(largest: float, *, least: int = 16) -> int:
    """Return the first of least, 1.5 x least, 2 x least, 3 x least, ... at or above a value."""
    end = least
    while end < largest:
        if end * 3 >= largest * 2:
            return end * 3 // 2
        end *= 2
    return end


def nice_end(largest: float) -> float:
    """Return the first of 1, 1.5, 2, 3, 5, 8 times a power of ten above a value, with some room."""
    if largest <= 0:
        return 1.0
    wanted = largest * 1.05
    base = 10.0 ** floor(log10(wanted))
    return next(base * step for step in (1, 1.5, 2, 3, 5, 8, 10) if base * step >= wanted)


def end_without_outliers(values: Sequence[float]) -> float:
    """Return a nice end of an axis above all values but those that would flatten the others.

    An outlier is more than four times as large as nine tenths of the values are, or larger still.

    Source:
        The bounds are our own choice: with fewer values a large one may well be typical.
    """
    ordered = sorted(values)
    if len(ordered) < LEAST_VALUES:
        return nice_end(ordered[-1] if ordered else 0.0)
    bound = OUTLIER_RATIO * ordered[len(ordered) * 9 // 10 - 1]
    return nice_end(max(value for value in ordered if value <= bound))


def stride_for(count: int, limit: int) -> int:
    """Return how many neighbours share one place on the chart: a power of two, 1 when all fit."""
    stride = 1
    while count > limit * stride:
        stride *= 2
    return stride


def picked(rows: Sequence[Row], limit: int = MAX_ROWS) -> list[Row]:
    """Return the rows of every n-th step, and of the last one; ``k`` numbers the steps."""
    steps = _steps(rows)
    if not steps:
        return []
    per_step = max(1, len(rows) // len(steps))
    stride = stride_for(len(steps), max(1, limit // per_step))
    last = max(steps)
    return [row for row in rows if int(_number(row["k"])) % stride == 0 or row["k"] == last]


def medians(rows: Sequence[Row], value: str, limit: int = MAX_ROWS) -> list[Row]:
    """Return one row for each group of neighbouring steps of one kind, with their median value.

    A row spans ``from`` to ``to``; ``kind`` keeps cold and observed steps out of warm groups.
    """
    stride = stride_for(len(rows), limit)
    if stride == 1:
        return list(rows)
    groups: dict[tuple[int, Cell], list[Row]] = {}
    for row in rows:
        groups.setdefault((int(_number(row["k"])) // stride, row["kind"]), []).append(row)
    return [_median_row(group, value) for group in groups.values()]


def _median_row(group: Sequence[Row], value: str) -> Row:
    """Return a row over the whole group."""
    middle = median(_number(row[value]) for row in group)
    return {**group[0], "to": group[-1]["to"], value: middle}


def _steps(rows: Iterable[Row]) -> set[float]:
    """Return the numbers of the steps that have rows."""
    return {_number(row["k"]) for row in rows}


def _number(cell: Cell) -> float:
    """Return a cell that is known to hold a number."""
    if isinstance(cell, (int, float)):
        return cell
    msg = f"{cell!r} is not a number"
    raise TypeError(msg)
