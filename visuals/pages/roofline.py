"""The Roofline page: this device's roofs, where a step turns, and what another device would do.

A thin script: it never loops or sleeps. Measurements belong to the hub and run in the engine.
"""

from __future__ import annotations

import streamlit as st

from inference.messages import ModelReady
from inference.shape_jobs import ShapeJobs
from visuals.live.hub import Hub
from visuals.pages.roofs import roofs_section
from visuals.pages.turn import turn_section
from visuals.pages.whatif import whatif_section

POLL_S = 0.5


def roofline_page(hub: Hub, jobs: ShapeJobs) -> None:
    """Draw the page."""
    here, turn, elsewhere = st.tabs(
        [
            "This machine's roofs",
            "Where the bottleneck turns",
            "What if: another model, device, batch",
        ]
    )
    ready = hub.engine_status().ready
    with here:
        if _model_line(hub, ready):
            roofs_section(hub, ready)
    with turn:
        if ready is not None:
            turn_section(hub, ready)
        else:
            st.info("This counts the model that is loaded; it is still loading.")
    with elsewhere:
        whatif_section(hub, jobs)
    _watch(hub)


def _model_line(hub: Hub, ready: ModelReady | None) -> bool:
    """Say what is held, or how far its loading is; tell whether anything can be measured."""
    if ready is not None:
        return True
    status = hub.engine_status()
    if status.error:
        st.warning(f"The default model could not be loaded: {status.error}")
    elif status.stage is not None:
        st.info(f"Loading the model: {status.stage.stage} \u2026 The roofs can be measured after.")
    return bool(status.error)


def _watch(hub: Hub) -> None:
    """Run the page again when a measurement or a load has come to its end."""
    kind, ready = hub.measure_status().kind, hub.engine_status().ready
    is_waiting = kind is not None or hub.engine_status().stage is not None

    @st.fragment(run_every=POLL_S if is_waiting else None)
    def watched() -> None:
        if (hub.measure_status().kind, hub.engine_status().ready) != (kind, ready):
            st.rerun()

    watched()
