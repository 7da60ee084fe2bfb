"""The latency of each request of a batched run, and how many met limits set by the reader."""

from __future__ import annotations

import streamlit as st

from inference.figures.goodput import goodput
from inference.figures.latency import latency_summaries, run_seconds
from inference.records.run import RunTrace
from inference.runs.recordings import BATCH, recorded_runs
from visuals.charts.batch_bytes import LATENCY_COLUMNS, latency_table
from visuals.charts.slots import EXPLANATION, slot_timeline
from visuals.charts.theme import Row
from visuals.charts.units import amount, counted, scaled
from visuals.live.hub import Hub
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.recorded import recorded_line
from visuals.pages.session import bound
from visuals.words.glossary import spelled_out

LANES = "One lane for each slot; padding is a row that is done before its batch is."
LEAST_HEIGHT, LEGEND_HEIGHT, LANE_HEIGHT = 260, 110, 13


def runs_section(hub: Hub) -> None:
    """Draw the choice of a run of several requests, its slots, its latencies and its goodput."""
    traces = _batched_runs(hub)
    if not traces:
        traces = list(recorded_runs(BATCH))
        if not _recorded(traces):
            return
    names = [_name(trace) for trace in traces]
    chosen = st.selectbox("Run", names, **bound("br-run", names))
    trace = traces[names.index(chosen)]
    left, right = st.columns([8, 4], gap="medium")
    with left:
        draw_chart(
            slot_timeline(trace).properties(height=_height(trace)),
            key="br-slots",
        )
        st.caption(f"{LANES} {EXPLANATION['how']}")
        columns = spelled_out(LATENCY_COLUMNS)
        rows: list[Row] = [
            dict(zip(columns, cells, strict=True))
            for cells in latency_table(trace.requests, latency_summaries(trace))
        ]
        with st.container(key="br-latency"):
            draw_table(rows, caption="Latency of each request", is_wide=True)
        st.caption(
            "Interrupted: how many of a request's tokens had to wait for another row's prefill. "
            "The wait is part of its inter-token latency (ITL), since a reader waits for it."
        )
    with right:
        _goodput(trace)


def _recorded(traces: list[RunTrace]) -> bool:
    """Say that these are no runs of this user's; tell whether there is one at all."""
    own = (
        "For your own, on the Live page choose Batch, then Start: each request's "
        "time to first token (TTFT) with its wait, its inter-token latency (ITL), and the prefills "
        "that delayed it are then shown here."
    )
    if not traces:
        st.info(own)
        return False
    info = traces[0].info
    recorded_line("A recorded batch", info.device, info.started_at, info.model_id, own)
    return True


def _height(trace: RunTrace) -> int:
    """Return the height of the timeline in which the slots' lanes can be told apart."""
    slots = trace.info.plan.slots or len(trace.requests)
    return max(LEAST_HEIGHT, LEGEND_HEIGHT + LANE_HEIGHT * slots)


def _batched_runs(hub: Hub) -> list[RunTrace]:
    """Return the hub's runs of several requests, the newest first."""
    traces = [hub.snapshot(run) for run in hub.runs()]
    several = [
        trace for trace in traces if trace is not None and len(trace.requests) > 1 and trace.events
    ]
    return sorted(several, key=lambda trace: trace.info.started_at, reverse=True)


def _goodput(trace: RunTrace) -> None:
    st.markdown("**Goodput**: requests per second that meet both limits, measured.")
    ttft_s = st.number_input(
        "Time to first token (TTFT) at most, in s", 0.01, 600.0, **bound("br-ttft")
    )
    tpot_ms = st.number_input(
        "Time per output token (TPOT) at most, in ms", 1.0, 60000.0, **bound("br-tpot")
    )
    kept = goodput(trace, ttft_s=float(ttft_s), tpot_s=float(tpot_ms) / 1e3)
    undecided = len(kept.undecided)
    st.metric(
        "Goodput",
        scaled(kept.requests_per_s, "requests/s"),
        delta=f"{len(kept.good)} of {counted(kept.finished, 'finished request')}"
        + (f", {undecided} undecided" if undecided else ""),
        delta_color="off",
        delta_arrow="off",
        help="TTFT includes the wait for a slot; TPOT is the mean ITL. Per second of the run's own "
        "time: step times and idle waits.",
    )
    if undecided:
        st.caption(
            f"Neither good nor bad: {counted(undecided, 'request')}. Attention was captured or "
            "parts were timed between every two tokens, so no TPOT was measured."
        )
    st.caption(f"The run took {amount(run_seconds(trace.events), 's')} of its own time.")


def _name(trace: RunTrace) -> str:
    plan = trace.info.plan
    slots = plan.slots or len(trace.requests)
    return (
        f"{trace.info.started_at:%H:%M:%S} UTC \u00b7 {len(trace.requests)} requests, "
        f"{counted(slots, 'slot')}, {plan.policy} \u00b7 {trace.info.run_id}"
    )
