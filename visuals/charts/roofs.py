"""The sweeps behind the measured roofs: best, median and worst timing of each size. No torch."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from inference.records.rooflines import SweepPoint
from visuals.charts.theme import HOST, MEMORY, Chart, Row, finished

GIGA = 1e9
_ROW_HEIGHT = 26
_AXIS_HEIGHT = 60


def sweep_chart(points: Sequence[SweepPoint], unit: str, what: str) -> Chart:
    """Return one line a size: a bar to the median, a rule from the worst to the best.

    Args:
        points: In the order measured.
        unit: ``GB/s`` or ``GFLOP/s``.
        what: What was swept, for the title.
    """
    base = alt.Chart(alt.NamedData("sweep"))
    y = alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=330, labelOverlap=False))
    x_title = f"{unit}, measured"
    tooltip = [
        alt.Tooltip("label:N", title=what),
        alt.Tooltip("best:Q", title=f"best, {unit}", format=",.4~g"),
        alt.Tooltip("median:Q", title=f"median, {unit}", format=",.4~g"),
        alt.Tooltip("worst:Q", title=f"worst, {unit}", format=",.4~g"),
    ]
    bars = base.mark_bar(color=MEMORY, opacity=0.75, height={"band": 0.6}).encode(
        x=alt.X("median:Q", title=x_title, scale=alt.Scale(zero=True)), y=y, tooltip=tooltip
    )
    spread = base.mark_rule(color=HOST, strokeWidth=3).encode(
        x=alt.X("worst:Q", title=x_title), x2="best:Q", y=y
    )
    top = base.transform_filter("datum.is_roof").encode(x=alt.X("best:Q", title=x_title), y=y)
    roof = top.mark_point(shape="diamond", size=120, filled=True, color=HOST, opacity=1)
    text = top.mark_text(align="left", dx=9, fontSize=13, fontWeight=600, color=HOST)
    chart = alt.layer(bars, spread, roof, text.encode(text=alt.value("the roof")))
    sized = finished(
        chart,
        {"sweep": sweep_rows(points)},
        description=f"Bar chart: {unit} of {what}, by size.",
    )
    return sized.properties(height=_AXIS_HEIGHT + _ROW_HEIGHT * len(points))


def sweep_rows(points: Sequence[SweepPoint]) -> list[Row]:
    """Return one row a size, in the chart's unit; the best of all is the roof."""
    top = max((point.best for point in points), default=0.0)
    return [
        {
            "label": point.label,
            "best": point.best / GIGA,
            "median": point.median / GIGA,
            "worst": point.worst / GIGA,
            "is_roof": float(point.best == top),
        }
        for point in points
    ]
