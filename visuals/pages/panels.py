"""The live panel of a run as pages show it: over its own WebSocket, or fed by the page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from inference.process.messages import MeasureCeilings
from inference.records.status import RunState
from visuals.live.frames import frame
from visuals.live.hub import WATCHED_SPLIT, Hub
from visuals.live.live_run import LiveRun
from visuals.pages.measure_controls import start_measuring
from visuals.pages.presenter import say_in_address
from visuals.pages.session import panel_state, session
from visuals.pages.widget_keys import PANELS
from visuals.panel.component import live_panel
from visuals.panel.stage import Stage

POLL_S = 0.5
NOTHING_FOLLOWS = RunState.DONE  # a panel tells its page of no state after a last one
PARTS = ("linear", "attention")  # what the roofline shows of steps that are timed in parts


def run_panel(  # noqa: PLR0913  each is one thing that a page says of the panel
    hub: Hub,
    run: LiveRun,
    *,
    key: str = "panel",
    label: str = "",
    state: RunState | None = None,
    panels: Sequence[str] | None = None,
    stage: Stage | None = None,
) -> None:
    """Show the panel; where it gets no WebSocket, feed it twice a second instead.

    Args:
        hub: Whose run it is.
        run: The run to show.
        key: Of the panel; see :func:`live_panel`.
        label: Stands before the model's name.
        state: The run's state that the page was drawn for; None for the one it is in. With
            ``NOTHING_FOLLOWS`` the page does not run again for another state.
        panels: Names of the panels shown; None for all.
        stage: What the panel needs to present or to follow; None for neither.
    """
    state = state or run.state
    if session().is_polling:
        drawn = run.state if state is NOTHING_FOLLOWS else state
        _polled_panel(hub, run, key=key, label=label, state=drawn, panels=panels)
        return
    result = live_panel(
        run,
        key=key,
        label=label,
        state=state,
        panels=panels,
        stage=stage,
        on_measure=partial(start_measuring, hub, MeasureCeilings()),
        on_presenting=partial(say_in_address, key) if _presents(stage) else None,
    )
    _time_parts(hub, run, result.part)
    if result.transport == "poll":
        session().is_polling = True
        st.rerun()


def _presents(stage: Stage | None) -> bool:
    return stage is not None and stage["role"] == "presenter"


def shows_parts() -> bool:
    """Tell whether the roofline of the Live page's own run shows parts of steps."""
    return panel_state(PANELS[0]).get("part") in PARTS


def _time_parts(hub: Hub, run: LiveRun, shown: str | None) -> None:
    """Have the parts of some steps timed while the roofline shows them, and only then."""
    wants_parts = shown in PARTS
    if wants_parts or run.split_every == WATCHED_SPLIT:  # what Settings ask for stays as it is
        hub.split_steps(run, is_wanted=wants_parts)


def _polled_panel(  # noqa: PLR0913  as for run_panel
    hub: Hub,
    run: LiveRun,
    *,
    key: str,
    label: str,
    state: RunState,
    panels: Sequence[str] | None,
) -> None:
    @st.fragment(run_every=None if state.is_final else POLL_S)
    def polled() -> None:
        hub.touch(run)
        cursor = panel_state(key).get("cursor", 0)
        update = frame(hub.snapshot(run), hub.status(run), cursor)
        result = live_panel(
            run,
            key=key,
            frame=update,
            label=label,
            state=run.state,
            panels=panels,
            on_measure=partial(start_measuring, hub, MeasureCeilings()),
        )
        if result.transport == "restored":
            session().is_polling = False
            st.rerun()
        if run.state.is_final and not state.is_final:
            st.rerun()

    polled()
