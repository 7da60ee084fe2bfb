"""What came of loads on engines elsewhere: kept on disk, opened again, exported."""

from __future__ import annotations

import streamlit as st

from inference.figures.loads import Limits
from inference.records.arrivals import RemoteRun
from inference.records.batches import BatchSweep
from inference.records.errors import TokenByTokenError
from inference.remote.load_plans import plan_name
from inference.runs.arrival_exports import requests_csv
from inference.runs.load_store import LoadStore
from inference.runs.recordings import recorded_measurements
from inference.runs.remote_file import to_json
from visuals.charts.loads import (
    MOST_LANES,
    Figure,
    curve_rows,
    figure_rows,
    load_notes,
    load_table,
    load_timeline,
    prompt_tokens,
    request_figures,
    throughput_latency,
    wait_rows,
)
from visuals.live.hub import Hub
from visuals.live.load_runs import LoadRuns
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.markdown import escaped, quoted
from visuals.pages.session import bound, change, session
from visuals.words import serving as words

MS_PER_S = 1e3


def results_section(hub: Hub, loads: LoadRuns, *, is_watching: bool) -> None:
    """Draw the choice of a kept load and what came of it."""
    state = session().serving_page
    keys = [one.key for one in loads.store.entries()]
    if not keys:
        st.info(words.NO_LOAD)
        return
    if state.shown in keys and state.shown != session().serving.load:
        change(**{"load-shown": state.shown})
        state.shown = ""  # once: another may be chosen afterwards
    key = st.selectbox("Load", keys, **bound("load-shown", keys))
    try:
        runs = loads.store.open(key)
    except TokenByTokenError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    _heading(runs)
    limits = _limits()
    draw_table(load_table(runs, limits), caption="Figures of the load", is_wide=True)
    draw_table(wait_rows(runs), caption="The rate sent, and the wait on this side", is_wide=True)
    st.caption(words.FIGURES)
    for note in load_notes(runs):
        st.warning(escaped(note), icon=":material/flag:")
    _charts(hub, runs)
    _ways_out(loads.store, key, runs, is_watching=is_watching)


def _heading(runs: tuple[RemoteRun, ...]) -> None:
    info, first = runs[0].endpoint, runs[0].requests[0].ask
    engine = f"{info.engine.value} {info.version}".strip()
    counted = prompt_tokens(runs)
    prompts = "" if counted is None else f" Prompts: {_span(counted)} tokens by the engine's count."
    st.caption(
        f"{quoted(first.model_id)} of {escaped(engine)} at {quoted(info.address)}, "
        f"{runs[0].started_at:%Y-%m-%d %H:%M} UTC, {first.max_new_tokens:,} new tokens at most."
        f"{prompts}"
    )


def _span(counted: tuple[int, int]) -> str:
    low, high = counted
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _limits() -> Limits:
    left, right = st.columns(2)
    ttft = left.number_input("Good: TTFT at most, ms", 1.0, 600_000.0, **bound("load-ttft"))
    tpot = right.number_input("Good: TPOT at most, ms", 0.1, 60_000.0, **bound("load-tpot"))
    return Limits(ttft_s=float(ttft) / MS_PER_S, tpot_s=float(tpot) / MS_PER_S)


def _charts(hub: Hub, runs: tuple[RemoteRun, ...]) -> None:
    names = [run.run_id if run.load is None else plan_name(run.load) for run in runs]
    run = runs[0]
    if len(runs) > 1:
        name = st.segmented_control("Step shown", names, **bound("load-step", names), required=True)
        run = runs[names.index(name or names[0])]
    draw_chart(load_timeline(run), key="load-timeline")
    more = len(run.requests) - MOST_LANES
    shown = f" The first {MOST_LANES} are shown, {more:,} are not." if more > 0 else ""
    st.caption(f"{words.TIMELINE}{shown}")
    for figure, box in zip(Figure, st.columns(2), strict=True):
        with box:
            if figure_rows(run, figure):
                draw_chart(request_figures(run, figure), key=f"load-{figure.value.lower()}")
            else:
                st.caption(f"{figure.value}: not known of any request.")
    sweep, origin = _local_sweep(hub)
    if len(runs) > 1 and curve_rows(runs, None):
        st.markdown("**Throughput and latency**")
        draw_chart(throughput_latency(runs, sweep), key="load-curve")
        beside = "" if sweep is None else f" {words.BESIDE} {origin}: {_of(sweep)}."
        st.caption(f"{words.CURVE}{beside}")


def _local_sweep(hub: Hub) -> tuple[BatchSweep | None, str]:
    """Return the sweep of batches measured here, else the recorded one, and which it is."""
    ours = hub.measure_status().batches
    if ours is not None and ours.points:
        return ours, "measured here"
    recorded = recorded_measurements()
    return (None, "") if recorded is None else (recorded.batches, "recorded")


def _of(sweep: BatchSweep) -> str:
    return f"{escaped(sweep.model_id)} on {escaped(sweep.device.name)}"


def _ways_out(
    store: LoadStore, key: str, runs: tuple[RemoteRun, ...], *, is_watching: bool
) -> None:
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Run file",
            data=lambda: to_json(runs),
            file_name=f"load-{key}.json",
            mime="application/json",
            on_click="ignore",
            key="load-file",
            help="What the arrivals command reads: every request and all that arrived.",
        )
        st.download_button(
            "Requests as CSV",
            data=lambda: requests_csv(runs),
            file_name=f"load-{key}.csv",
            mime="text/csv",
            on_click="ignore",
            key="load-csv",
        )
        if not is_watching:
            st.button("Delete", key="load-delete", on_click=_delete, args=(store, key))


def _delete(store: LoadStore, key: str) -> None:
    state = session().serving_page
    try:
        store.delete(key)
    except TokenByTokenError as error:
        state.sentence = str(error)
