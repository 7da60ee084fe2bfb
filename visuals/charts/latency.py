"""Each step's step time, prefill and decode apart, each on an axis of its own.

A prefill step time can be a hundred times a decode step time; on one axis the decode bars would
vanish. Cold, observed and disturbed steps are drawn hollow and named. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import altair as alt

from inference.figures.disturbance import disturbance, is_disturbed
from inference.records.run import RunInfo, RunTrace
from inference.records.steps import Phase, StepEvent
from visuals.charts.axes import (
    MAX_BARS,
    axis_end,
    end_without_outliers,
    medians,
    picked,
    stride_for,
)
from visuals.charts.roofline_rows import lower_bound_s
from visuals.charts.theme import DASHED, DECODE, PREFILL, Chart, Row, finished, whole_numbers
from visuals.charts.units import amount, counted, milliseconds, share

EXPLANATION = {
    "what": "How long each forward pass took. Prefill feeds the whole prompt in one pass, decode "
    "feeds one token a pass, so each has its own axis.",
    "read": "A bar is one step. Hollow bars are cold (the first calls after the model was loaded), "
    "observed (something was captured) or disturbed (other programs had the processors for more "
    "than a twentieth of it, as the operating system counts; figures leave such steps out). The "
    "dashed line is counted, a calculated minimum: the least time of the step under the device's "
    "measured roofs.",
    "how": "Measured: one step time of the clock over the forward pass and the choice of the "
    "token, ended when the device was done. Drawing, pausing and pacing are not part of it.",
    "formula": "TTFT = step times up to the first token; ITL = step time between two tokens; "
    "TPOT = (E2E \u2212 TTFT) / (tokens \u2212 1)",
    "source": "The definitions of vLLM's serving benchmark.",
}


def prefill_step_times(trace: RunTrace | None = None) -> Chart:
    """Return a bar for each prefill step; without a trace, the chart to be filled from outside."""
    return _step_times(
        "prefill_step_times", "prefill step", PREFILL, _datasets(trace, Phase.PREFILL)
    )


def decode_step_times(trace: RunTrace | None = None) -> Chart:
    """Return a bar for each decode step, or for each few of them when there are many."""
    return _step_times("decode_step_times", "decode step", DECODE, _datasets(trace, Phase.DECODE))


def phase_step_rows(events: Iterable[StepEvent], phase: Phase, *, first: int = 1) -> list[Row]:
    """Return one row for each step of a phase; ``first`` is the number of the first one."""
    steps = (event for event in events if event.phase is phase)
    return [_step_time_row(k, event) for k, event in enumerate(steps, start=first)]


def bound_rows(
    events: Iterable[StepEvent], info: RunInfo, phase: Phase, *, first: int = 1
) -> list[Row]:
    """Return the counted lower bound at both ends of each step; none without measured roofs."""
    steps = enumerate((event for event in events if event.phase is phase), start=first)
    rows = ((k, milliseconds(lower_bound_s(event, info))) for k, event in steps)
    return [
        {"k": k, "x": k + side, "ms": ms}
        for k, ms in rows
        if ms is not None
        for side in (-0.5, 0.5)
    ]


def step_time_extent(events: Iterable[StepEvent], phase: Phase) -> list[Row]:
    """Return one row that holds the far ends of both axes, which grow in steps.

    A few steps that took many times as long as the others do not count: they are cut off there.
    """
    step_times_s = [event.duration_s for event in events if event.phase is phase]
    steps = axis_end(len(step_times_s), least=1 if phase is Phase.PREFILL else 16)
    return [{"x": steps + 0.5, "y": end_without_outliers([one * 1e3 for one in step_times_s])}]


def caption(events: Sequence[StepEvent], info: RunInfo | None = None) -> str:
    """Return what the newest step shows about latency, in one line."""
    if not events:
        return "No step yet."
    return _about_newest(events, info) + _about_disturbed(events) + _about_groups(events)


def _about_disturbed(events: Sequence[StepEvent]) -> str:
    """Return how many steps other programs disturbed; nothing where none was."""
    sentence = disturbance(events).sentence
    return f" {sentence}." if sentence else ""


def _about_groups(events: Sequence[StepEvent]) -> str:
    """Return how many steps a bar stands for, once there are more than can be drawn."""
    decode_steps = sum(event.phase is Phase.DECODE for event in events)
    stride = stride_for(decode_steps, MAX_BARS)
    return f" Each bar is the median of {stride} steps." if stride > 1 else ""


def _about_newest(events: Sequence[StepEvent], info: RunInfo | None) -> str:
    """Return what the newest step shows."""
    newest = events[-1]
    timing = amount(milliseconds(newest.duration_s), "ms")
    least_s = None if info is None else lower_bound_s(newest, info)
    if least_s is not None and newest.duration_s > 0:
        least = amount(milliseconds(least_s), "ms")
        explained = share(least_s / newest.duration_s)
        return f"{timing}{_named(newest)}; the counted minimum of {least} is {explained} of it."
    if newest.phase is Phase.PREFILL:
        return f"Prefill of {counted(newest.query_tokens, 'token')} took {timing}{_named(newest)}."
    warm_s = [e.duration_s for e in events if e.phase is Phase.DECODE and _kind(e) == "warm"]
    if not warm_s:
        return f"This step {timing}{_named(newest)}."
    middle = amount(milliseconds(median(warm_s)), "ms")
    warm = counted(len(warm_s), "warm step")
    return f"This step {timing}{_named(newest)}; median of {warm} {middle}."


def _named(event: StepEvent) -> str:
    """Return the reason why a step does not count as warm."""
    reasons = {
        "warm": "",
        "cold": ", cold: includes first-call costs",
        "observed": ", observed: capturing cost time",
        "disturbed": ", disturbed",
    }
    return reasons[_kind(event)]


def _kind(event: StepEvent) -> str:
    """Return how a step's time must be read."""
    if event.observed:
        return "observed"
    if event.cold:
        return "cold"
    return "disturbed" if is_disturbed(event) else "warm"


def _step_time_row(k: int, event: StepEvent) -> Row:
    """Return the row of one step; what comes and goes, step by step, has no note of its own."""
    kind = _kind(event)
    is_named = kind in {"cold", "observed"} and not event.parts
    return {
        "k": k,
        "from": k - 0.45,
        "to": k + 0.45,
        "ms": milliseconds(event.duration_s),
        "kind": kind,
        "note": kind if is_named else None,
    }


def _datasets(trace: RunTrace | None, phase: Phase) -> dict[str, list[Row]] | None:
    """Return the rows of a phase's chart by the names of their data."""
    if trace is None:
        return None
    name = f"{phase.value}_step_times"
    rows = medians(phase_step_rows(trace.events, phase), "ms", MAX_BARS)
    return {
        name: rows,
        f"{name}_bounds": picked(bound_rows(trace.events, trace.info, phase)),
        f"{name}_extent": step_time_extent(trace.events, phase),
    }


def _step_times(name: str, title: str, colour: str, datasets: dict[str, list[Row]] | None) -> Chart:
    """Return bars over one named dataset, with the axes' ends in a second one."""
    base = alt.Chart(alt.NamedData(name))
    x_scale = alt.Scale(domainMin=0.5, nice=False)
    x = alt.X("from:Q", title=title, axis=whole_numbers(), scale=x_scale)
    # The axis ends where its extent says; what is longer is cut off there, and marked.
    end = f"(data('{name}_extent')[0] || {{y: 1}}).y"
    y_scale = alt.Scale(nice=False, domainMin=0, domainMax=alt.ExprRef(end))
    y = alt.Y("ms:Q", title="ms per step", axis=alt.Axis(tickCount=4), scale=y_scale)
    is_warm = "datum.kind === 'warm'"
    bars = base.mark_bar(color=colour, stroke=colour, clip=True).encode(
        x=x,
        x2="to:Q",
        y=y,
        y2=alt.datum(0),
        fillOpacity=alt.condition(is_warm, alt.value(0.95), alt.value(0.15)),
        strokeWidth=alt.condition(is_warm, alt.value(0), alt.value(1.5)),
        # Many narrow bars in a row are all stroke, so they are told by being pale.
        strokeOpacity=alt.condition("datum.kind === 'disturbed'", alt.value(0.5), alt.value(1)),
        tooltip=[
            alt.Tooltip("k:Q", title=title),
            alt.Tooltip("ms:Q", title="step time, ms", format=".4~g"),
            alt.Tooltip("kind:N"),
        ],
    )
    # Above the plot, where no neighbour's bar is, and once for steps of one kind in a row.
    notes = (
        base.transform_window(before="lag(kind)", sort=[alt.SortField("k")])
        .transform_filter("datum.note !== null && datum.note !== datum.before")
        .mark_text(dy=-3, align="left", baseline="bottom", fontSize=13, color=colour)
    )
    # The page's theme gives the style its colour, which must stand out on the bars.
    bounds = alt.Chart(alt.NamedData(f"{name}_bounds")).mark_line(
        style="bound", strokeDash=list(DASHED), strokeWidth=2, clip=True
    )
    ends = alt.Chart(alt.NamedData(f"{name}_extent")).mark_point(opacity=0)
    chart = alt.layer(
        bars,
        bounds.encode(x=alt.X("x:Q", title=title), y=alt.Y("ms:Q", title="ms per step")),
        notes.encode(x=x, y=alt.value(0), text="note:N"),
        ends.encode(x=alt.X("x:Q", title=title), y=alt.Y("y:Q", title="ms per step")),
        *_cut_off(base.transform_filter(f"datum.ms > {end}"), alt.X("k:Q", title=title)),
    )
    return finished(chart, datasets, description=f"Bar chart: milliseconds of each {title}.")


def _cut_off(longer: alt.Chart, middle: alt.X) -> tuple[alt.Chart, alt.Chart]:
    """Return a mark at the top of each bar that is cut off there, and the value of the longest."""
    top = alt.value(0)
    marks = longer.mark_point(
        shape="triangle-up", fill="white", stroke="black", strokeWidth=1, size=55, yOffset=7
    )
    value = (
        longer.transform_joinaggregate(longest="max(ms)")
        .transform_filter("datum.ms === datum.longest")
        .transform_calculate(shown="format(datum.ms, ',.3r') + ' ms'")
        .mark_text(align="left", baseline="top", dx=9, fontSize=13)
    )
    return (
        marks.encode(x=middle, y=top),
        value.encode(x=middle, y=top, text="shown:N"),
    )
