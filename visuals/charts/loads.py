"""A load on an engine elsewhere: each request on a timeline, its latencies, and the sweep's curve.

No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import altair as alt

from inference.figures.arrivals import arrival_figures
from inference.figures.loads import Limits, LoadFigures, Spread, load_figures
from inference.records.arrivals import RemoteRequest, RemoteRun, Spacing
from inference.records.batches import BatchSweep
from inference.records.status import RunState
from inference.remote.load_plans import plan_name
from visuals.charts.axes import MAX_ROWS, nice_end, stride_for
from visuals.charts.theme import (
    DECODE,
    HOST_LIGHT,
    KV,
    PREFILL,
    Chart,
    Row,
    finished,
)
from visuals.charts.units import DASH, amount, milliseconds, scaled, share

MOST_LANES = 100
MOST_TICKS = 1200
PARTS = ("waited here", "to first token", "tokens")
PART_COLOURS = (HOST_LIGHT, PREFILL, DECODE)
OF_ENGINE, OF_THIS = "this load", "this program"
LEAST_TIMELINE, LEGEND_AND_AXIS, LANE = 260, 130, 11
HEIGHT = 240


class Figure(StrEnum):
    """What is drawn of each request of a load."""

    TTFT = "TTFT"
    TPOT = "TPOT"


def load_timeline(run: RemoteRun) -> Chart:
    """Return a line for each request: planned, sent, first token, each read of tokens, end."""
    rows = timeline_rows(run)
    bars = alt.Chart(alt.NamedData("parts"))
    end = max((float(row["end"] or 0.0) for row in rows), default=1.0)
    x = alt.X(
        "begin:Q",
        title="seconds since the load began",
        scale=alt.Scale(domain=[0, nice_end(end)], nice=False),
    )
    y = alt.Y("lane:O", title="requests", axis=alt.Axis(labels=False, ticks=False))
    drawn = bars.mark_bar(height={"band": 0.8}).encode(
        x=x,
        x2="end:Q",
        y=y,
        color=alt.Color(
            "part:N",
            title=None,
            scale=alt.Scale(domain=list(PARTS), range=list(PART_COLOURS)),
            legend=alt.Legend(orient="top"),
        ),
        opacity=alt.condition("datum.is_warm_up === 'yes'", alt.value(0.4), alt.value(1)),
        tooltip=[
            alt.Tooltip("request:N"),
            alt.Tooltip("part:N"),
            alt.Tooltip("begin:Q", title="from, s", format=".3f"),
            alt.Tooltip("end:Q", title="to, s", format=".3f"),
            alt.Tooltip("is_warm_up:N", title="warm-up"),
            alt.Tooltip("outcome:N"),
        ],
    )
    ticks = (
        alt.Chart(alt.NamedData("reads"))
        .mark_tick(thickness=1, color="#fff", opacity=0.3, bandSize=4)
        .encode(x=x, y=y)
    )
    ends = (
        alt.Chart(alt.NamedData("failed"))
        .mark_point(shape="cross", filled=True, color="#C00000", size=60, angle=45, opacity=1)
        .encode(x=x, y=y, tooltip=["request:N", "outcome:N"])
    )
    height = max(LEAST_TIMELINE, LEGEND_AND_AXIS + LANE * min(len(run.requests), MOST_LANES))
    return finished(
        alt.layer(drawn, ticks, ends),
        {"parts": rows, "reads": read_rows(run), "failed": failed_rows(run)},
        description="A bar for each request: waiting here, to its first token, its tokens.",
    ).properties(height=height)


def timeline_rows(run: RemoteRun) -> list[Row]:
    """Return the parts of each request that is shown."""
    rows: list[Row] = []
    for lane, request in enumerate(run.requests[:MOST_LANES]):
        marks, figures = request.marks, arrival_figures(request)
        sent_s, end_s = marks.sent_s, marks.ended_s
        first_s = None if sent_s is None or figures.ttft_s is None else sent_s + figures.ttft_s
        moments = (
            marks.planned_s,
            sent_s,
            first_s or end_s,
            end_s if first_s is not None else None,
        )
        for part, begin, end in zip(PARTS, moments, moments[1:], strict=False):
            if begin is None or end is None or end <= begin:
                continue
            rows.append(
                {
                    **_named(lane, request),
                    "part": part,
                    "begin": round(begin, 4),
                    "end": round(end, 4),
                }
            )
    return rows


def read_rows(run: RemoteRun) -> list[Row]:
    """Return the reads that brought tokens, of the requests shown, thinned where there are many."""
    rows: list[Row] = []
    for lane, request in enumerate(run.requests[:MOST_LANES]):
        reads = dict.fromkeys(one.at_s for one in request.arrivals if one.raw)
        rows += [{"lane": lane, "begin": round(at_s, 4)} for at_s in reads]
    return rows[:: stride_for(len(rows), MOST_TICKS)]


def failed_rows(run: RemoteRun) -> list[Row]:
    """Return where the requests shown ended that did not come to their own end."""
    return [
        {**_named(lane, request), "begin": round(request.marks.ended_s, 4)}
        for lane, request in enumerate(run.requests[:MOST_LANES])
        if request.state is not RunState.DONE and request.marks.ended_s is not None
    ]


def request_figures(run: RemoteRun, figure: Figure) -> Chart:
    """Return a point for each measured request: when it was sent, and its TTFT or TPOT."""
    rows = figure_rows(run, figure)
    top = nice_end(max((float(row["ms"] or 0.0) for row in rows), default=1.0))
    points = (
        alt.Chart(alt.NamedData("requests"))
        .mark_point(
            filled=True, size=45, opacity=0.85, color=PREFILL if figure is Figure.TTFT else DECODE
        )
        .encode(
            x=alt.X("begin:Q", title="sent, seconds since the load began"),
            y=alt.Y(
                "ms:Q",
                title=f"{figure.value}, ms",
                scale=alt.Scale(domain=[0, top], nice=False),
            ),
            tooltip=[
                alt.Tooltip("request:N"),
                alt.Tooltip("ms:Q", title=f"{figure.value}, ms", format=".4~g"),
                alt.Tooltip("begin:Q", title="sent, s", format=".3f"),
            ],
        )
    )
    return finished(
        alt.layer(points),
        {"requests": rows[:: stride_for(len(rows), MAX_ROWS)]},
        description=f"A point for each request: {figure.value} over when it was sent.",
    ).properties(height=HEIGHT)


def figure_rows(run: RemoteRun, figure: Figure) -> list[Row]:
    """Return a row for each measured request that finished and whose figure is known."""
    is_open = run.load is not None and run.load.spacing is not Spacing.CLOSED
    rows: list[Row] = []
    for request in run.requests:
        figures = arrival_figures(request)
        ttft_s = figures.ttft_planned_s if is_open else figures.ttft_s
        value_s = ttft_s if figure is Figure.TTFT else figures.tpot_s
        sent_s = request.marks.sent_s
        if request.is_warm_up or request.state is not RunState.DONE:
            continue
        if value_s is not None and sent_s is not None:
            rows.append(
                {
                    "request": request.request_id,
                    "begin": round(sent_s, 4),
                    "ms": milliseconds(value_s),
                }
            )
    return rows


def throughput_latency(runs: Sequence[RemoteRun], sweep: BatchSweep | None = None) -> Chart:
    """Return TPOT over throughput, a point for each step of a sweep, beside the local engine's."""
    rows = curve_rows(runs, sweep)
    base = alt.Chart(alt.NamedData("curve"))
    ms = [float(row["ms"] or 0.0) for row in rows]
    rates = [float(row["rate"] or 0.0) for row in rows]
    x = alt.X(
        "rate:Q",
        title="output tokens/s, all requests",
        scale=alt.Scale(domain=[0, nice_end(max(rates, default=1.0))], nice=False),
    )
    y = alt.Y(
        "ms:Q",
        title="median TPOT, ms",
        scale=alt.Scale(domain=[0, nice_end(max(ms, default=1.0))], nice=False),
    )
    color = alt.Color(
        "of:N",
        title=None,
        scale=alt.Scale(domain=[OF_ENGINE, OF_THIS], range=[DECODE, KV]),
        legend=alt.Legend(orient="top", labelLimit=0),
    )
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=color, order="order:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        y=y,
        color=color,
        tooltip=[
            alt.Tooltip("name:N", title="load"),
            alt.Tooltip("rate:Q", title="tokens/s", format=".4~g"),
            alt.Tooltip("ms:Q", title="TPOT, ms", format=".4~g"),
            alt.Tooltip("of:N", title="of"),
        ],
    )
    names = base.mark_text(align="left", dx=8, dy=-8).encode(x=x, y=y, color=color, text="label:N")
    return finished(
        alt.layer(lines, points, names),
        {"curve": rows},
        description="Line chart: median TPOT over output tokens per second, by load.",
    ).properties(height=HEIGHT + 100)


def curve_rows(runs: Sequence[RemoteRun], sweep: BatchSweep | None) -> list[Row]:
    """Return a row for each step of a sweep whose throughput and TPOT are known."""
    rows: list[Row] = []
    for order, run in enumerate(runs):
        figures = load_figures(run)
        if run.load is None or figures.tokens_per_s is None or figures.tpot_s.p50 is None:
            continue
        name = plan_name(run.load)
        rows.append(
            {
                "of": OF_ENGINE,
                "order": order,
                "rate": round(figures.tokens_per_s, 3),
                "ms": milliseconds(figures.tpot_s.p50),
                "name": name,
                "label": name.removesuffix(" at a time"),
            }
        )
    points = () if sweep is None else sweep.points
    shortest = min((one.context_tokens for one in points), default=0)
    rows += [
        {
            "of": OF_THIS,
            "order": one.batch,
            "rate": round(one.batch_tokens_per_s, 3),
            "ms": milliseconds(one.median_s),
            "name": f"{one.batch} rows, context {one.context_tokens:,}",
            "label": f"{one.batch}",
        }
        for one in points
        if one.context_tokens == shortest and not one.is_disturbed
    ]
    return rows


def load_table(runs: Sequence[RemoteRun], limits: Limits) -> list[Row]:
    """Return the figures of each step of a sweep in a row."""
    return [_table_row(run, load_figures(run, limits)) for run in runs]


def wait_rows(runs: Sequence[RemoteRun]) -> list[Row]:
    """Return the rate sent beside the rate wanted, and the wait on this side, of open loops."""
    rows: list[Row] = []
    for run in runs:
        figures = load_figures(run)
        if run.load is None or figures.wanted_per_s is None:
            continue
        rows.append(
            {
                "Load": plan_name(run.load),
                "Wanted": amount(figures.wanted_per_s, "requests/s"),
                "Sent": amount(figures.sent_per_s, "requests/s"),
                "Waited on this side": _spread(figures.wait_s),
            }
        )
    return rows


def load_notes(runs: Sequence[RemoteRun]) -> list[str]:
    """Return what a reader of the figures has to know, in sentences."""
    notes: list[str] = []
    for run in runs:
        name = "" if run.load is None else f"{plan_name(run.load)}: "
        figures = load_figures(run)
        if figures.is_late:
            notes.append(
                f"{name}this side was up to {amount(milliseconds(run.lateness_s), 'ms')} late, so "
                "the figures are too; send less, or from a machine that does less"
            )
        reasons = list(dict.fromkeys(one.message for one in run.requests if one.message))
        notes += [f"{name}{reason}" for reason in reasons[:3]]
    return notes


def prompt_tokens(runs: Sequence[RemoteRun]) -> tuple[int, int] | None:
    """Return the fewest and the most tokens of a prompt by the engine's count; None for none."""
    said = [
        one.usage.prompt_tokens
        for run in runs
        for one in run.requests
        if one.usage is not None and one.usage.prompt_tokens
    ]
    return (min(said), max(said)) if said else None


def _table_row(run: RemoteRun, figures: LoadFigures) -> Row:
    whole = figures.finished + figures.failed
    undecided = f", {figures.undecided} undecided" if figures.undecided else ""
    return {
        "Load": plan_name(run.load) if run.load is not None else run.run_id,
        "Finished": f"{figures.finished:,} of {whole:,}",
        "TTFT, ms": _spread(figures.ttft_s),
        "TPOT, ms": _spread(figures.tpot_s),
        "Gaps, ms": _spread(figures.gaps_s),
        "Output": scaled(figures.tokens_per_s, "tokens/s"),
        "Requests": amount(figures.finished_per_s, "/s"),
        "Goodput": f"{amount(figures.good_per_s, '/s')} ({figures.good or 0} good{undecided})",
        "Prefix hits": share(figures.prefix_hit_ratio),
    }


def _spread(spread: Spread) -> str:
    values = (spread.p50, spread.p95, spread.p99)
    known = [milliseconds(value) for value in values if value is not None]
    return " / ".join(f"{value:,.4g}" for value in known if value is not None) or DASH


def _named(lane: int, request: RemoteRequest) -> Row:
    return {
        "lane": lane,
        "request": request.request_id,
        "is_warm_up": "yes" if request.is_warm_up else "no",
        "outcome": request.message or request.state.value,
    }
