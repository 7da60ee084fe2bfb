"""The Roofline page: this device's roofs, where a step turns, and what another device would do.

A thin script: it never loops or sleeps. Measurements belong to the hub and run in the engine.
"""

from __future__ import annotations

import streamlit as st

from inference.counting.shape_jobs import ShapeJobs
from inference.process.messages import ModelReady
from visuals.live.hub import Hub
from visuals.pages.crossover import crossover_section
from visuals.pages.markdown import escaped
from visuals.pages.measure_controls import engine_activity, watch_engine, without_model
from visuals.pages.roofs import roofs_section
from visuals.pages.session import enter_page
from visuals.pages.what_if import whatif_section


def roofline_page(hub: Hub, jobs: ShapeJobs) -> None:
    """Draw the page."""
    enter_page("roofline")
    drawn = engine_activity(hub)
    here, turn, elsewhere = st.tabs(
        [
            "This machine's roofs",
            "Where the bottleneck turns",
            "What if: another model, device, batch",
        ]
    )
    ready = drawn.ready
    with here:
        roofs_section(hub, ready, is_ready=_model_line(hub, ready))
    with turn:
        if ready is None:
            st.info(without_model(hub, "its crossover is counted once it is loaded"))
        crossover_section(hub, ready)
    with elsewhere:
        whatif_section(hub, jobs)
    watch_engine(hub, drawn)


def _model_line(hub: Hub, ready: ModelReady | None) -> bool:
    """Say how far the model's loading is; tell whether anything can be measured."""
    if ready is not None:
        return True
    status = hub.engine_status()
    if status.stage is None and not status.error:
        st.info(without_model(hub, "the roofs can be measured all the same"))
        return True
    if status.error:
        st.warning(f"The default model could not be loaded: {escaped(status.error)}")
    elif status.stage is not None:
        st.info(
            f"Loading the model: {escaped(status.stage.stage)} \u2026 "
            "The roofs are measured afterwards, once the engine is idle."
        )
    return bool(status.error)
