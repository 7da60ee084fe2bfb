"""The buttons and the progress of a measurement, for the sections that start one."""

from __future__ import annotations

import streamlit as st

from inference.errors import InputError
from inference.messages import Measure
from visuals.live.hub import Hub

POLL_S = 0.5


def measure_controls(hub: Hub, command: Measure, *, label: str, key: str) -> None:
    """Draw the start and the stop of a measurement, how far it is, and how the last one ended."""
    status = hub.measure_status()
    is_ours = status.kind is type(command)
    with st.container(horizontal=True, gap="small", key=f"{key}-controls"):
        st.button(
            label,
            key=f"{key}-start",
            type="primary",
            icon=":material/speed:",
            disabled=status.kind is not None,
            on_click=_start,
            args=(hub, command),
            help="The engine does it while no run is on; runs that are started meanwhile wait.",
        )
        st.button(
            "Stop",
            key=f"{key}-stop",
            icon=":material/stop:",
            disabled=not is_ours,
            on_click=hub.stop_measuring,
        )
    if is_ours:
        _progress(hub)
    elif status.kind is not None:
        st.caption("Another measurement is going on.")
    if status.sentence and status.kind is None:
        st.warning(status.sentence)


def _start(hub: Hub, command: Measure) -> None:
    try:
        hub.measure(command)
    except InputError as error:
        st.session_state["measure-sentence"] = str(error)


def _progress(hub: Hub) -> None:
    """Show how far it is, twice a second."""

    @st.fragment(run_every=POLL_S)
    def progress_line() -> None:
        status = hub.measure_status()
        if status.is_waiting:
            st.progress(0.0, text="Waiting for the run that is on to end \u2026")
        elif status.stage is not None:
            st.progress(status.stage.ratio or 0.0, text=f"Measuring: {status.stage.stage} \u2026")

    progress_line()
