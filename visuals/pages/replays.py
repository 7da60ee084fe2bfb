"""One kept run on the Runs page: the live panel plays it again, with a name and exports."""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.recordings import recorded_runs, recording_names
from inference.runs.store import RunStore
from visuals.charts.chart_files import run_charts
from visuals.charts.made_with import made_with
from visuals.charts.units import date_text
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.export_menu import export_menu
from visuals.pages.markdown import escaped
from visuals.pages.page_states import ReplayState
from visuals.pages.panels import run_panel
from visuals.pages.session import bound, field_of, session, take_settings, value_of
from visuals.pages.settings_of_runs import settings_of_trace
from visuals.pages.step_back import step_slider
from visuals.pages.transport_buttons import hold_button, step_button
from visuals.pages.widget_keys import NAME

WHOLE = "whole"
SHIPPED = "shipped-"  # before the names of the recorded runs that come with the program
SPEEDS: dict[str, float] = {
    "Speed: its own": 1.0,
    "Speed: \u00bd": 0.5,
    "Speed: \u00bc": 0.25,
    "Speed: 2 \u00d7": 2.0,
    "Speed: 4 \u00d7": 4.0,
    "Speed: 16 \u00d7": 16.0,
}


def shipped_runs() -> dict[str, RunTrace]:
    """Return the recorded runs that come with the program by the keys that open them."""
    return {
        f"{SHIPPED}{name}{f'-{number}' if number > 1 else ''}": trace
        for name in recording_names()
        for number, trace in enumerate(recorded_runs(name), start=1)
    }


def replay_view(hub: Hub, store: RunStore, key: str) -> None:
    """Draw the run with this key, or say why it cannot be shown."""
    st.button("All runs", key="back", icon=":material/arrow_back:", on_click=_leave)
    try:
        state = _state(hub, store, key)
    except TokenByTokenError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    run = hub.find(state.run_id) or _play(hub, state, is_paused=True)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="xsmall", key="replay-controls"
    ):
        _controls(hub, state, run)
        _name(store, state)
        title = store.entry(key)
        st.button(
            "Run again",
            key="run-again",
            icon=":material/refresh:",
            on_click=_again,
            args=(state,),
            help="Take this run's prompt and settings to the Live page; Start runs it again.",
        )
        export_menu(
            (state.trace,),
            run_charts(state.trace),
            title=title.title[:120] if title else key,
            stem=f"token-by-token-{key}",
        )
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    shown = hub.snapshot(run)
    step_slider(
        "replay-step",
        0 if shown is None else len(shown.events),
        len(state.trace.events),
        partial(_go_to, hub, state),
        is_off=run.state is RunState.RUNNING,
    )
    info = state.trace.info
    st.caption(
        f"Recorded on {escaped(info.device.name)} in {escaped(info.device.dtype)}, "
        f"{date_text(info.started_at)}. The address of this page opens the same view for others "
        "on this server."
    )
    with st.expander("Settings of this run", icon=":material/tune:", key="run-settings"):
        for name, text in made_with((state.trace,)).items():
            st.markdown(f"**{name}**: {escaped(text)}")
    run_panel(hub, run, label="recorded run")


def _state(hub: Hub, store: RunStore, key: str) -> ReplayState:
    """Return what is played, from the beginning where another run was shown before.

    Raises:
        RunFileError: The run is not kept, or its file was damaged.
    """
    ours = session()
    if ours.replay is not None and ours.replay.key == key:
        return ours.replay
    shipped = shipped_runs().get(key)
    trace = store.open(key) if shipped is None else shipped
    state = ours.replay = ReplayState(key=key, trace=trace, run_id="")
    if st.query_params.get("view") == WHOLE:
        state.run_id = hub.adopt(trace).run_id
    else:
        _play(hub, state, is_paused=False)
    return state


def _play(hub: Hub, state: ReplayState, *, is_paused: bool) -> LiveRun:
    st.query_params.pop("view", None)
    run = hub.replay(state.trace, speed=_speed(), is_paused=is_paused)
    state.run_id = run.run_id
    return run


def _controls(hub: Hub, state: ReplayState, run: LiveRun) -> None:
    """Draw play or pause, step, from the beginning, the whole run at once, and the speed."""
    play = partial(_play, hub, state)
    hold_button(
        hub,
        run,
        go="Play",
        help_text="Play the run at its own pace, or hold it. Nothing is computed again.",
        again=play,
    )
    step_button(hub, run, play, help_text="One press shows the next forward pass.")
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


def _name(store: RunStore, state: ReplayState) -> None:
    entry = store.entry(state.key)
    if entry is None:
        return  # a run that comes with the program has a fixed name
    st.text_input(
        "Name",
        value=entry.name,
        key=f"{NAME}{state.key}",
        placeholder="Give the run a name",
        label_visibility="collapsed",
        width=260,
        on_change=_rename,
        args=(store, state),
    )


def _again(state: ReplayState) -> None:
    take_settings(settings_of_trace(state.trace))
    session().runs_page.wants_live = True


def _speed() -> float:
    return SPEEDS.get(session().runs.speed, 1.0)


def _restart(hub: Hub, state: ReplayState) -> None:
    _play(hub, state, is_paused=False)


def _go_to(hub: Hub, state: ReplayState) -> None:
    """Show the run after the step that the slider says."""
    st.query_params.pop("view", None)
    steps = field_of("replay-step")
    run = hub.replay(state.trace, speed=_speed(), is_paused=True, steps=steps)
    state.run_id = run.run_id


def _show_whole(hub: Hub, state: ReplayState) -> None:
    st.query_params["view"] = WHOLE  # for whoever opens the address
    state.run_id = hub.adopt(state.trace).run_id


def _change_speed(hub: Hub, run: LiveRun) -> None:
    hub.change_speed(run, _speed())


def _rename(store: RunStore, state: ReplayState) -> None:
    state.sentence = ""
    try:
        store.rename(state.key, value_of(f"{NAME}{state.key}"))
    except TokenByTokenError as error:
        state.sentence = str(error)


def _leave() -> None:
    st.query_params.clear()
    session().replay = None
