"""The roofline: each step's rate of computing over its FLOP per byte, under the device's two roofs.

Points are measured step times of counted work. A roof is drawn only with where it comes from:
measured solid, from a data sheet dotted. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from inference.counting.roofline import NOISE_RATIO
from inference.records.run import RunTrace
from inference.records.steps import Part
from visuals.charts.roofline_rows import point_datasets
from visuals.charts.theme import (
    DECODE,
    PREFILL,
    PROVENANCE_DASHES,
    ROOF,
    Chart,
    Row,
    decades,
    finished,
)
from visuals.charts.units import percent

EXPLANATION = {
    "what": "Each step as a point: how many operations it does per byte moved, against how "
    "many it did per second. The slope is what the memory can deliver, the flat line what the "
    "processor can multiply.",
    "read": "The two roofs meet at the ridge: left of it a step is memory-bound, right of it "
    "compute-bound, and far below both it is overhead-bound, limited by launches and work on the "
    "host. No step can be above the roofs; one that lies more than "
    f"{percent(NOISE_RATIO):.0f} % above them is named, since then the roof was measured while the "
    "device was busy or slower, some of the bytes came from a cache, or the step used a faster "
    "kernel than the measured product.",
    "how": "Operations and bytes are counted from the model's shape: weights once per step, each "
    "sequence's K/V, attention as a causal mask allows. Times are measured step times; those of "
    "linear operations and of attention alone come from steps that were timed in parts, which are "
    "marked as observed. Roofs are measured on this device (solid) or a vendor's figures (dotted).",
    "formula": "attainable FLOP/s = min(peak FLOP/s, FLOP per byte \u00d7 bytes/s)",
    "source": "Williams, Waterman and Patterson 2009, Roofline, CACM 52(4).",
}

SOURCES = list(PROVENANCE_DASHES)
LIVE_TAGS = ("measured", "datasheet")
_PHASES = ["prefill", "decode"]
_X_TITLE = "FLOP per byte moved"
_Y_TITLE = "FLOP/s"


def roofline_step(trace: RunTrace | None = None) -> Chart:
    """Return the points of whole steps; without a trace, the chart to be filled from outside."""
    return _roofline(Part.STEP, trace)


def roofline_linear(trace: RunTrace | None = None) -> Chart:
    """Return the points of the linear operations alone, of the steps where they were timed."""
    return _roofline(Part.LINEAR, trace)


def roofline_attention(trace: RunTrace | None = None) -> Chart:
    """Return the points of attention alone, of the steps where it was timed."""
    return _roofline(Part.ATTENTION, trace)


def _roofline(part: Part, trace: RunTrace | None) -> Chart:
    """Return one roofline over data named after the part."""
    name = f"roofline_{part.value}"
    datasets = None if trace is None else point_datasets(trace, part)
    return roofline(name, datasets, description=f"Roofline chart, log-log: {part.value} points.")


def roofline(
    name: str,
    datasets: dict[str, list[Row]] | None,
    *,
    description: str,
    tags: Sequence[str] = LIVE_TAGS,
    drop: int = 12,
) -> Chart:
    """Return roofs, their ridge, the points with a trail, and a ring around the newest ones.

    Args:
        name: Of the points' data; the others' names begin with it.
        datasets: The rows; None leaves them to be set from outside.
        description: What the chart shows, in words.
        tags: Where the roofs drawn come from, for the legend.
        drop: Pixels from the newest prefill down to its name; a point on the roof needs more, or
            its name lies on the slope.
    """
    chart = alt.layer(
        _ends(f"{name}_extent"),
        _roofs(f"{name}_roofs", tags),
        *_ridges(f"{name}_ridges"),
        _trail(name),
        _points(name),
        *_newest(f"{name}_now", drop),
    )
    return finished(chart, datasets, description=description)


def _x(field: str) -> alt.X:
    axis = decades("format(datum.value, '~g')")
    return alt.X(field, title=_X_TITLE, axis=axis, scale=alt.Scale(type="log", nice=False))


def _y(field: str) -> alt.Y:
    axis = decades("format(datum.value, '~s')")
    return alt.Y(field, title=_Y_TITLE, axis=axis, scale=alt.Scale(type="log", nice=False))


def _ends(name: str) -> alt.Chart:
    """Return unseen marks in two corners; whole powers of ten, so that the axes seldom grow."""
    ends = alt.Chart(alt.NamedData(name)).mark_point(opacity=0)
    return ends.encode(x=_x("x:Q"), y=_y("y:Q"))


def _dash(tags: Sequence[str]) -> alt.StrokeDash:
    """Return the line style that says where a roof comes from."""
    scale = alt.Scale(domain=SOURCES, range=[list(PROVENANCE_DASHES[name]) for name in SOURCES])
    legend = alt.Legend(orient="top", titleOrient="left", values=list(tags))
    return alt.StrokeDash("source:N", title="roofs", scale=scale, legend=legend)


def _roofs(name: str, tags: Sequence[str]) -> alt.Chart:
    base = alt.Chart(alt.NamedData(name))
    return base.mark_line(color=ROOF, strokeWidth=2.5, strokeJoin="round").encode(
        x=_x("x:Q"), y=_y("y:Q"), strokeDash=_dash(tags), detail="roof:N"
    )


def _ridges(name: str) -> tuple[alt.Chart, alt.Chart]:
    """Return a mark and a label where two roofs meet."""
    base = alt.Chart(alt.NamedData(name))
    tooltip = [
        alt.Tooltip("source:N"),
        alt.Tooltip("x:Q", title="ridge, FLOP/byte", format=".3~s"),
        alt.Tooltip("y:Q", title="peak, FLOP/s", format=".3~s"),
        alt.Tooltip("bytes:Q", title="memory, bytes/s", format=".3~s"),
    ]
    place = base.encode(x=_x("x:Q"), y=_y("y:Q"))
    mark = place.mark_point(shape="diamond", size=90, color=ROOF, filled=True, opacity=1)
    text = place.mark_text(dy=-9, align="center", baseline="bottom", fontSize=14, color=ROOF)
    return mark.encode(tooltip=tooltip), text.encode(text="label:N")


def _colour() -> alt.Color:
    scale = alt.Scale(domain=_PHASES, range=[PREFILL, DECODE])
    return alt.Color("phase:N", title=None, scale=scale, legend=None)


def _shape() -> alt.Shape:
    scale = alt.Scale(domain=_PHASES, range=["square", "circle"])
    return alt.Shape("phase:N", title=None, scale=scale, legend=None)


def _trail(name: str) -> alt.Chart:
    base = alt.Chart(alt.NamedData(name))
    return base.mark_line(strokeWidth=1.5, opacity=0.45).encode(
        x=_x("x:Q"), y=_y("y:Q"), color=_colour(), order=alt.Order("k:Q")
    )


def _points(name: str) -> alt.Chart:
    """Return the points, those of cold, observed and disturbed steps hollow."""
    base = alt.Chart(alt.NamedData(name))
    is_warm = "datum.kind === 'warm'"
    fills = alt.Scale(domain=_PHASES, range=[PREFILL, DECODE])
    return base.mark_point(size=42, filled=False, strokeWidth=1.5, opacity=0.8).encode(
        x=_x("x:Q"),
        y=_y("y:Q"),
        color=_colour(),
        fill=alt.Fill("phase:N", legend=None, scale=fills),
        shape=_shape(),
        fillOpacity=alt.condition(is_warm, alt.value(0.55), alt.value(0)),
        tooltip=[
            alt.Tooltip("k:Q", title="step"),
            alt.Tooltip("phase:N"),
            alt.Tooltip("kind:N"),
            alt.Tooltip("x:Q", title="FLOP/byte, counted", format=".3~s"),
            alt.Tooltip("y:Q", title="FLOP/s, measured", format=".3~s"),
            alt.Tooltip("pct:Q", title="% of the measured roof", format=".3~g"),
        ],
    )


def _newest(name: str, drop: int) -> tuple[alt.Chart, ...]:
    """Return the newest step's point, ringed and named."""
    base = alt.Chart(alt.NamedData(name))
    place = base.encode(x=_x("x:Q"), y=_y("y:Q"), color=_colour())
    ring = place.mark_point(size=230, filled=False, strokeWidth=3, opacity=1)
    # Below and to the side that the roofs leave free. One mark for both phases, since a filter that
    # leaves none of them makes Vega warn of an axis without an extent.
    label = place.mark_text(
        align=_by_phase("'left'", "'right'"),
        dx=_by_phase("13", "-6"),
        dy=_by_phase("5", str(drop)),
        baseline="top",
        fontSize=14,
        fontWeight=600,
    )
    return (ring.encode(shape=_shape()), label.encode(text="label:N"))


def _by_phase(decode: str, prefill: str) -> alt.ExprRef:
    return alt.ExprRef(expr=f"datum.phase === 'decode' ? {decode} : {prefill}")
