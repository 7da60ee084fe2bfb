"""The rows behind the charts of runs side by side. No torch, no page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from inference.counting.costs import step_cost
from inference.figures.disturbance import undisturbed
from inference.figures.fitted_lines import LEAST_PLACES, fitted_line
from inference.figures.latency import latency_summary
from inference.records.costs import Ceilings
from inference.records.errors import InputError
from inference.records.steps import Phase, StepEvent
from inference.runs.comparisons import Sample, Subject
from inference.runs.row_bytes import kv_bytes_by_step
from visuals.charts.axes import stride_for
from visuals.charts.theme import Row
from visuals.charts.units import mebibytes, milliseconds, significant

POINTS = 400  # of one line
COUNTED_STEPS = 32  # of one run, evenly spread, whose work is counted for the roofline


def subject_step_rows(subject: Subject, over: str) -> list[Row]:
    """Return a row for each decode step: its number or its context, and the median step time."""
    timings: dict[int, list[float]] = {}
    for sample in subject.samples:
        for step, event in enumerate(_decode_steps(sample), start=1):
            k = step if over == "step" else _context(event, sample)
            timings.setdefault(k, []).append(event.duration_s)
    return _thinned(subject, {k: milliseconds(median(all_s)) for k, all_s in timings.items()}, "ms")


def cache_rows(subject: Subject) -> list[Row]:
    """Return the K/V of a row after its prefill (0) and each of its decode steps, first repeat."""
    sample = subject.samples[0]
    stored: dict[int, float | None] = {}
    decoded = 0
    for event, size in kv_bytes_by_step(sample.trace, sample.request_id):
        decoded += event.phase is Phase.DECODE
        stored[decoded] = mebibytes(size)
    return _thinned(subject, stored, "mib")


def ttft_rows(subject: Subject) -> list[Row]:
    """Return a row for each repeat that has put out a token."""
    rows: list[Row] = []
    for sample in subject.samples:
        summary = latency_summary(sample.trace, sample.request_id)
        if summary.ttft_s is not None:
            rows.append(
                {
                    **_named(subject),
                    "prompt_tokens": len(sample.request.prompt_ids),
                    "ms": milliseconds(summary.ttft_s),
                    "kind": "cold" if summary.is_cold else "warm",
                }
            )
    return rows


def fit_rows(rows: Sequence[Row]) -> list[Row]:
    """Return both ends of the line fitted to the warm points; none where they bear none out."""
    line = fitted_line(_points(rows))
    if line is None or not line.is_borne_out:
        return []
    ends = [x for x, _ in _points(rows)]
    return [
        {"prompt_tokens": x, "ms": line.slope * x + line.intercept} for x in (min(ends), max(ends))
    ]


def fit_caption(subjects: Iterable[Subject]) -> str:
    """Return what the fitted line says, or why there is none, in a sentence."""
    line = fitted_line(_points([row for one in subjects for row in ttft_rows(one)]))
    if line is None:
        return f"No line is fitted: that takes warm runs of at least {LEAST_PLACES} prompt lengths."
    slope, error = significant(line.slope), significant(line.slope_error)
    if not line.is_borne_out:
        return (
            "No line is fitted: the times scatter more than they change with the length "
            f"(slope {slope} ms per prompt token, standard error {error})."
        )
    sign = "+" if line.intercept >= 0 else "\u2212"
    return (
        f"Fitted to the warm runs by least squares: TTFT \u2248 {slope} ms \u00d7 prompt tokens "
        f"{sign} {significant(abs(line.intercept))} ms; standard error of the slope {error} ms."
    )


def roofline_rows(subject: Subject) -> list[Row]:
    """Return a row for each phase: the counted work of its warm steps over their step times."""
    rows: list[Row] = []
    for phase in Phase:
        events = [
            event
            for sample in subject.samples
            for event in sample.trace.events
            if event.phase is phase and not event.observed and event.duration_s > 0
        ]
        warm = undisturbed([event for event in events if not event.cold] or events)
        point = _work(warm, subject)
        if point is not None:
            rows.append({**_named(subject), "phase": phase.value, **point})
    return rows


def roof_rows(rows: Sequence[Row], ceilings: Ceilings | None) -> list[Row]:
    """Return the roof's corners over the range of the points; none without measured roofs."""
    if ceilings is None or not rows:
        return []
    places = [float(row["intensity"] or 0.0) for row in rows]
    ridge = ceilings.ridge_flops_per_byte
    corners = (min(*places, ridge) / 2, ridge, max(*places, ridge) * 2)
    return [
        {
            "intensity": x,
            "gflops": min(ceilings.flops_per_s, x * ceilings.bytes_per_s) / 1e9,
        }
        for x in corners
    ]


def _work(events: Sequence[StepEvent], subject: Subject) -> Row | None:
    """Return intensity and rate of some steps together; None where nothing can be counted."""
    stride = max(1, len(events) // COUNTED_STEPS)
    chosen = events[::stride]
    shape = subject.samples[0].trace.info.shape
    try:
        costs = [step_cost(shape, event.rows) for event in chosen]
    except InputError:
        return None
    moved = sum(cost.bytes_moved for cost in costs)
    flops = sum(cost.flops for cost in costs)
    if not moved or not flops:
        return None
    step_time_s = sum(event.duration_s for event in chosen)
    return {"intensity": flops / moved, "gflops": flops / step_time_s / 1e9}


def _decode_steps(sample: Sample) -> Iterable[StepEvent]:
    return (
        event
        for event in sample.trace.events
        if event.phase is Phase.DECODE
        and any(row.request_id == sample.request_id for row in event.rows)
    )


def _context(event: StepEvent, sample: Sample) -> int:
    return next(row.context_tokens for row in event.rows if row.request_id == sample.request_id)


def _thinned(subject: Subject, values: dict[int, float | None], name: str) -> list[Row]:
    """Return rows in order, neighbours joined to their median where there are too many."""
    steps = sorted(values)
    stride = stride_for(len(steps), POINTS)
    rows: list[Row] = []
    for start in range(0, len(steps), stride):
        group = steps[start : start + stride]
        measured = [value for step in group if (value := values[step]) is not None]
        row: Row = {**_named(subject), "k": group[0]}
        row[name] = median(measured) if measured else None
        rows.append(row)
    return rows


def _points(rows: Iterable[Row]) -> list[tuple[float, float]]:
    """Return the warm points as pairs of prompt tokens and milliseconds."""
    warm = (row for row in rows if row["kind"] == "warm")
    return [(float(row["prompt_tokens"] or 0), float(row["ms"] or 0)) for row in warm]


def _named(subject: Subject) -> Row:
    return {"label": subject.label, "subject": f"{subject.label}: {subject.title}"}
