"""A recorded run that plays again: its buttons, its slider over the steps, and its panel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from inference.records.status import RunState
from visuals.charts.made_with import made_with
from visuals.charts.units import date_text
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.playback import SPEEDS
from visuals.pages.markdown import escaped
from visuals.pages.page_states import ReplayState
from visuals.pages.panels import run_panel
from visuals.pages.session import bound, field_of, session
from visuals.pages.step_back import step_slider
from visuals.pages.transport_buttons import hold_button, step_button
from visuals.panel.stage import Stage

VIEW, WHOLE = "view", "whole"  # in the address


def play(hub: Hub, state: ReplayState, *, is_paused: bool, steps: int = 0) -> LiveRun:
    """Have a run play from the beginning, or from after some steps, and return what shows it."""
    st.query_params.pop(VIEW, None)
    run = hub.replay(state.trace, speed=_speed(), is_paused=is_paused, steps=steps)
    state.run_id = run.run_id
    return run


def replay_controls(hub: Hub, state: ReplayState, run: LiveRun) -> None:
    """Draw play or pause, step, from the beginning, the whole run at once, and the speed."""
    again = partial(play, hub, state)
    hold_button(
        hub,
        run,
        go="Play",
        help_text="Play the run at its own pace, or hold it. Nothing is computed again.",
        again=again,
    )
    step_button(hub, run, again, help_text="One press shows the next forward pass.")
    st.button(
        "From the start",
        key="restart",
        icon=":material/replay:",
        on_click=_restart,
        args=(hub, state),
    )
    st.button(
        "Whole run",
        key="whole",
        icon=":material/last_page:",
        on_click=_show_whole,
        args=(hub, state),
        help="Show all of it at once.",
    )
    st.selectbox(
        "Speed",
        list(SPEEDS),
        **bound("speed", list(SPEEDS), then=partial(_change_speed, hub, run)),
        width=170,
        label_visibility="collapsed",
    )


def replay_steps(hub: Hub, state: ReplayState, run: LiveRun) -> None:
    """Draw the slider over all steps of the run, which can be moved while it is held."""
    shown = hub.snapshot(run)
    step_slider(
        "replay-step",
        0 if shown is None else len(shown.events),
        len(state.trace.events),
        partial(_go_to, hub, state),
        is_off=run.state is RunState.RUNNING,
    )


def replay_panel(  # noqa: PLR0913  each is one thing that a page says of the panel
    hub: Hub,
    state: ReplayState,
    run: LiveRun,
    *,
    note: str = "",
    panels: Sequence[str] | None = None,
    stage: Stage | None = None,
) -> None:
    """Draw where and with what the run was made, and its panel.

    Args:
        hub: Plays it.
        state: What is played.
        run: As the hub shows it.
        note: A sentence more, in Markdown.
        panels: Names of the panels shown; None for all.
        stage: What the panel needs to present; None for not.
    """
    info = state.trace.info
    st.caption(
        f"Recorded on {escaped(info.device.name)} in {escaped(info.device.dtype)}, "
        f"{date_text(info.started_at)}. {note}"
    )
    with st.expander("Settings of this run", icon=":material/tune:", key="run-settings"):
        for name, text in made_with((state.trace,)).items():
            st.markdown(f"**{name}**: {escaped(text)}")
    run_panel(hub, run, label="recorded run", panels=panels, stage=stage)


def _speed() -> float:
    return SPEEDS.get(session().runs.speed, 1.0)


def _restart(hub: Hub, state: ReplayState) -> None:
    play(hub, state, is_paused=False)


def _go_to(hub: Hub, state: ReplayState) -> None:
    """Show the run after the step that the slider says."""
    play(hub, state, is_paused=True, steps=field_of("replay-step"))


def _show_whole(hub: Hub, state: ReplayState) -> None:
    st.query_params[VIEW] = WHOLE  # for whoever opens the address
    state.run_id = hub.adopt(state.trace).run_id


def _change_speed(hub: Hub, run: LiveRun) -> None:
    hub.change_speed(run, _speed())
