"""The Device page: what runs where and why, and what the device did in a run.

A thin script: it never loops or sleeps.
"""

from __future__ import annotations

import streamlit as st

from inference.figures.device import notes_of
from inference.process.messages import ModelReady
from inference.records.run import RunTrace
from inference.runs.recordings import FIRST_RUN, recorded_runs
from visuals.charts.device import (
    BUSY_EXPLANATION,
    COUNTERS,
    achieved_rows,
    cache_sentence,
    counter_rows,
    counters_over_time,
    energy_rows,
    launch_rows,
    launch_sentence,
    launches,
)
from visuals.charts.utilization import missing
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.markdown import escaped
from visuals.pages.recorded import recorded_line
from visuals.pages.session import bound, enter_page

POLL_S = 1.0


def device_page(hub: Hub) -> None:
    """Draw the page."""
    enter_page("device")
    ready = hub.engine_status().ready
    if ready is None:
        st.info("No model is loaded yet; this machine's devices are listed once one is.")
    else:
        _choices(ready)
    # Warm-ups and the tour's short runs are left out: they say little of a device.
    runs = [
        run
        for run in hub.runs()
        if run.is_kept and run.replay is None and run.recording is not None
    ]
    if not runs:
        _recorded()
        return
    names = {run.run_id: _name(hub, run) for run in runs}
    run_id = st.selectbox(
        "Run",
        list(reversed(names)),
        **bound("device-run", list(reversed(names))),
        format_func=lambda run_id: names.get(run_id) or str(run_id),
    )
    run = hub.find(run_id)
    if run is not None:
        _followed(hub, run)


def _choices(ready: ModelReady) -> None:
    """Say what was chosen to run on, what else there is, and how decode steps can be launched."""
    if ready.device_note:
        st.markdown(f"**{escaped(ready.device_note)}**")
    left, right = st.columns(2)
    with left:
        draw_table(
            [{"device": option.name, "what it is": option.label} for option in ready.devices],
            caption="Devices of this machine",
        )
    with right:
        draw_table(
            [
                {"decode steps": option.mode.value, "here": option.reason or "available"}
                for option in ready.decodes
            ],
            caption="Ways to launch decode steps on the device",
        )
    st.caption(
        "The device and how decode steps are launched are chosen in the settings of the Live page. "
        "To compare ways of launching, run one prompt under several settings on the Compare page."
    )


def _name(hub: Hub, run: LiveRun) -> str:
    trace = hub.snapshot(run)
    if trace is None:
        return run.run_id
    info = trace.info
    prompt = trace.requests[0].prompt_text if trace.requests else ""
    head = " ".join(prompt.split())[:60]
    return (
        f"{info.started_at:%H:%M:%S} \u00b7 {info.decode.value} on {info.device.name} \u00b7 {head}"
    )


def _recorded() -> None:
    """Draw what a recorded run says of its device, until there is one that was made here."""
    own = "Start a run on the **Live** page; what this device does during it is shown here."
    recorded = recorded_runs(FIRST_RUN)
    if not recorded:
        st.info(own)
        return
    info = recorded[0].info
    recorded_line(
        "The device during a recorded run,",
        info.device,
        info.started_at,
        info.model_id,
        own,
    )
    _run(recorded[0])


def _followed(hub: Hub, run: LiveRun) -> None:
    """Draw the run, again every second while it is going on."""
    is_final = run.state.is_final

    @st.fragment(run_every=None if is_final else POLL_S)
    def followed() -> None:
        hub.touch(run)
        trace = hub.snapshot(run)
        if trace is not None:
            _run(trace)
        if run.state.is_final and not is_final:
            st.rerun()

    followed()


def _run(trace: RunTrace) -> None:
    for note in notes_of(trace):
        st.warning(escaped(note), icon=":material/flag:")
    left, right = st.columns(2)
    with left:
        st.markdown("##### Host and device")
        st.markdown(launch_sentence(trace))
        if launch_rows(trace):
            draw_chart(launches(trace), key="launches")
        if sentence := cache_sentence(trace):
            st.caption(escaped(sentence))
    with right:
        st.markdown("##### Busy does not mean fast")
        if rows := achieved_rows(trace):
            draw_table(rows, caption="Busy time and achieved rates")
        st.caption(BUSY_EXPLANATION)
    if any(sample.energy_j is not None for sample in trace.telemetry):
        _energy(trace)
    _counters(trace)


def _energy(trace: RunTrace) -> None:
    """Draw the energy of a token in each phase; of a device without a counter nothing is said."""
    st.markdown("##### Energy per token")
    draw_table(energy_rows(trace), caption="Energy by phase")
    st.caption(
        "The energy counter of each whole GPU that holds the model, over the phase's steps, so "
        "idle power and other programs are included. The counter has a coarse resolution; a phase "
        "too short for it has no figure."
    )


def _counters(trace: RunTrace) -> None:
    """Draw the counters that were read, and say why others were not."""
    shown = [kind for kind in COUNTERS if counter_rows(kind, trace.telemetry)]
    if shown:
        st.markdown("##### Counters")
        for counters, column in zip(shown, st.columns(len(shown)), strict=True):
            with column:
                draw_chart(
                    counters_over_time(counters, trace.telemetry), key=f"counters-{counters.key}"
                )
    for sentence in missing(trace):
        st.caption(escaped(sentence))
