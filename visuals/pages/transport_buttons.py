"""The buttons that steer a run, wherever one is shown: hold it, step it, stop it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from inference.process.messages import Action
from inference.records.status import RunState
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

Begin = Callable[..., LiveRun | None]  # takes is_paused: wait before the first step


def hold_button(
    hub: Hub, run: LiveRun | None, *, go: str, help_text: str, again: Begin | None = None
) -> None:
    """Draw the button that holds a run between two steps, or resumes it.

    Args:
        hub: Has the run.
        run: The run shown; None while there is none.
        go: What the button says while the run is held.
        help_text: What holding it means.
        again: Begins anew once the run is over; without one the button is off then.
    """
    is_over = run is None or run.state.is_final
    is_held = run is not None and run.state is RunState.PAUSED
    is_offering = is_over and again is not None
    icon = "play_arrow" if is_offering else "resume" if is_held else "pause"
    st.button(
        f"{go} again" if is_offering else go if is_held else "Pause",
        key="pause",
        type="primary" if again is not None else "secondary",
        icon=f":material/{icon}:",
        disabled=is_over and again is None,
        on_click=_press_hold,
        args=(hub, run, again),
        shortcut="P",
        help=help_text,
    )


def step_button(hub: Hub, run: LiveRun | None, begin: Begin, *, help_text: str) -> None:
    """Draw the button that does one step, and begins a run where none is going on."""
    st.button(
        "Step",
        key="step",
        icon=":material/skip_next:",
        on_click=_press_step,
        args=(hub, run, begin),
        shortcut="S",
        help=help_text,
    )


def stop_button(press: Callable[[], None], *, help_text: str, is_off: bool = False) -> None:
    """Draw the button that ends what is going on."""
    st.button(
        "Stop",
        key="stop",
        icon=":material/stop:",
        disabled=is_off,
        on_click=press,
        help=help_text,
    )


def _press_hold(hub: Hub, run: LiveRun | None, again: Begin | None) -> None:
    if run is not None and not run.state.is_final:
        is_held = run.state is RunState.PAUSED
        hub.control(run, Action.RESUME if is_held else Action.PAUSE)
    elif again is not None:
        again(is_paused=False)


def _press_step(hub: Hub, run: LiveRun | None, begin: Begin) -> None:
    if run is None or run.state.is_final:
        run = begin(is_paused=True)
    if run is not None:
        hub.control(run, Action.STEP)
