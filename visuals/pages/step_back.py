"""Looking back at any step of a run that is over or held: a slider, moved by the arrow keys too.

What is shown of an earlier step is the run played again up to there, so all panels show the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from inference.records.run import RunTrace
from inference.records.status import RunState
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.page_states import EarlierStep, LivePageState
from visuals.pages.session import bound, change, field_of

POLL_S = 0.5


def step_slider(
    key: str, steps: int, total: int, then: Callable[[], None], *, is_off: bool = False
) -> None:
    """Draw the slider over all steps of a run.

    Args:
        key: Its mapped key; its field then says which step was chosen.
        steps: Steps shown at this moment.
        total: Steps of the run.
        then: Called once another step was chosen.
        is_off: It cannot be moved, since the run goes on.
    """
    if total < 1:
        return
    if field_of(key) != steps:
        change(**{key: steps})
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(
            "Steps shown",
            width="content",
            help="All panels show the run as it stood after this step. Arrow keys move by one.",
        )
        st.slider(
            "Steps shown",
            0,
            total,
            **bound(key, then=then),
            disabled=is_off,
            label_visibility="collapsed",
        )


def earlier_step(hub: Hub, state: LivePageState, run: LiveRun | None) -> LiveRun | None:
    """Draw the slider of a run that is over or paused; return the earlier step that is shown.

    None where the newest is.
    """
    can_look = run is not None and (run.state.is_final or run.state is RunState.PAUSED)
    trace = hub.snapshot(run) if run is not None and can_look else None
    if run is None or trace is None or not trace.events:
        state.earlier = None
        return None
    shown = _shown(hub, state, run, trace)
    total = len(trace.events)
    step_slider(
        "live-step",
        _steps(hub, shown) if shown is not None else total,
        total,
        partial(_look_back, hub, state, run),
    )
    if shown is not None and not run.state.is_final:
        _keep(hub, run)
    return shown


def _shown(hub: Hub, state: LivePageState, run: LiveRun, trace: RunTrace) -> LiveRun | None:
    """Return the earlier step looked at; none where the run has gone on since."""
    earlier = state.earlier
    is_same = (
        earlier is not None
        and earlier.of == run.run_id
        and len(earlier.trace.events) == len(trace.events)
    )
    shown = hub.find(earlier.run_id) if earlier is not None and is_same else None
    if shown is None:
        state.earlier = None
    return shown


def _look_back(hub: Hub, state: LivePageState, run: LiveRun) -> None:
    """Show the step that was chosen; the newest is the run itself."""
    steps, earlier = field_of("live-step"), state.earlier
    is_ours = earlier is not None and earlier.of == run.run_id
    # One trace for all steps looked at: its attention weights, once asked for, are kept by it.
    trace = earlier.trace if earlier is not None and is_ours else hub.snapshot(run)
    if trace is None or steps >= len(trace.events):
        state.earlier = None
        return
    shown = hub.replay(trace, is_paused=True, steps=steps)
    state.earlier = EarlierStep(of=run.run_id, trace=trace, run_id=shown.run_id)


def _steps(hub: Hub, run: LiveRun) -> int:
    trace = hub.snapshot(run)
    return 0 if trace is None else len(trace.events)


def _keep(hub: Hub, run: LiveRun) -> None:
    """Watch a paused run in place of the panel, which shows an earlier step of it meanwhile."""
    drawn = (run.state, _steps(hub, run))

    @st.fragment(run_every=POLL_S)
    def watched() -> None:
        hub.touch(run)
        if (run.state, _steps(hub, run)) != drawn:
            st.rerun()

    watched()
