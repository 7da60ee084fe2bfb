"""The buttons and the progress of a measurement, for the sections that start one."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inference.process.messages import Measure, ModelReady
from inference.records.errors import InputError
from inference.records.status import RunState
from visuals.live.hub import Hub
from visuals.pages.markdown import escaped

POLL_S = 0.5


def measure_controls(hub: Hub, command: Measure, *, label: str, key: str) -> None:
    """Draw the start and the stop of a measurement, how far it is, and how the last one ended."""
    status = hub.measure_status()
    is_ours = status.kind is type(command)
    is_ours_to_say = status.kind is None and status.ended in (None, type(command))
    with st.container(horizontal=True, gap="small", key=f"{key}-controls"):
        st.button(
            label,
            key=f"{key}-start",
            type="primary",
            icon=":material/speed:",
            disabled=status.kind is not None,
            on_click=start_measuring,
            args=(hub, command),
            help="The engine measures while no run is in progress; runs started meanwhile wait.",
        )
        st.button(
            "Stop",
            key=f"{key}-stop",
            icon=":material/stop:",
            disabled=not is_ours,
            on_click=hub.stop_measuring,
        )
    if is_ours:
        if status.is_by_itself:
            st.caption(
                "Measured automatically while the engine is idle, in ten seconds at most. A run "
                "started meanwhile goes first."
            )
        _progress(hub)
    elif status.kind is not None:
        st.caption("Another measurement is in progress.")
    if status.sentence and is_ours_to_say:
        st.warning(escaped(status.sentence))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineActivity:
    """What the engine was doing when a page began to draw.

    Attributes:
        kind: The measurement that was waiting or running; None for none.
        ready: The model loaded.
        is_loading: True while one was loading.
    """

    kind: type[Measure] | None
    ready: ModelReady | None
    is_loading: bool


def engine_activity(hub: Hub) -> EngineActivity:
    """Return what the engine is doing; take it before drawing anything that depends on it."""
    status = hub.engine_status()
    kind = hub.measure_status().kind
    return EngineActivity(kind=kind, ready=status.ready, is_loading=status.stage is not None)


def without_model(hub: Hub, then: str) -> str:
    """Return why there is no model, and what comes once there is."""
    status = hub.engine_status()
    if status.error:
        return f"No model is loaded: {escaped(status.error)}"
    if status.stage is None:
        return f"No model is loaded. Start a run on the Live page to load one; {then}."
    return f"The model is still loading; {then}."


def watch_engine(hub: Hub, drawn: EngineActivity) -> None:
    """Run the page again once the engine is doing something else than when the page was drawn.

    That may already be so, and then some parts of the page show the earlier state.
    """
    is_changing = drawn.kind is not None or drawn.is_loading or engine_activity(hub) != drawn

    @st.fragment(run_every=POLL_S if is_changing else None)
    def watched() -> None:
        if engine_activity(hub) != drawn:
            st.rerun()

    watched()


def start_measuring(hub: Hub, command: Measure) -> None:
    """Measure as soon as the engine is idle; say so where a measurement is going on already."""
    try:
        hub.measure(command)
    except InputError as error:
        st.toast(escaped(str(error)), icon=":material/hourglass:")


def _progress(hub: Hub) -> None:
    """Show how far it is, twice a second."""

    @st.fragment(run_every=POLL_S)
    def progress_line() -> None:
        status = hub.measure_status()
        if status.is_waiting:
            st.progress(0.0, text=f"Waiting for {_ahead(hub)} \u2026")
        elif status.stage is not None:
            st.progress(
                status.stage.ratio or 0.0, text=f"Measuring: {escaped(status.stage.stage)} \u2026"
            )

    progress_line()


def _ahead(hub: Hub) -> str:
    """Return what a measurement waits for."""
    going = (run.state for run in hub.runs() if run.replay is None)
    is_paused = RunState.PAUSED in going
    return "a run that is paused; resume or stop it" if is_paused else "the current run to end"
