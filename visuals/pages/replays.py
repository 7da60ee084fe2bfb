"""One kept run on the Runs page: the live panel plays it again, with a name and exports."""

from __future__ import annotations

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.runs.recordings import numbered_runs
from inference.runs.store import RunStore
from visuals.charts.chart_files import run_charts
from visuals.live.hub import Hub
from visuals.pages.export_menu import export_menu
from visuals.pages.markdown import escaped
from visuals.pages.page_states import ReplayState
from visuals.pages.replay_panel import (
    VIEW,
    WHOLE,
    play,
    replay_controls,
    replay_panel,
    replay_steps,
)
from visuals.pages.session import session, take_settings, value_of
from visuals.pages.settings_of_runs import settings_of_trace
from visuals.pages.widget_keys import NAME
from visuals.words.teaching import RANDOM, TeachingRun, teaching_run

SHIPPED = "shipped-"  # before the names of the recorded runs that come with the program
OTHERS_SEE = "The address of this page opens the same view for others on this server."


def shipped_runs() -> dict[str, RunTrace]:
    """Return the recorded runs that come with the program by the keys that open them."""
    return {f"{SHIPPED}{name}": trace for name, trace in numbered_runs().items()}


def replay_view(hub: Hub, store: RunStore, key: str) -> None:
    """Draw the run with this key, or say why it cannot be shown."""
    st.button("All runs", key="back", icon=":material/arrow_back:", on_click=_leave)
    try:
        state = _state(hub, store, key)
    except TokenByTokenError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    shown = teaching_run(key.removeprefix(SHIPPED)) if key.startswith(SHIPPED) else None
    if shown is not None:
        st.markdown(f"**{shown.title}.** {shown.look_at}")
    run = hub.find(state.run_id) or play(hub, state, is_paused=True)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="xsmall", key="replay-controls"
    ):
        replay_controls(hub, state, run)
        _name(store, state)
        _again_button(state, shown)
        title = store.entry(key)
        export_menu(
            (state.trace,),
            run_charts(state.trace),
            title=title.title[:120] if title else key,
            stem=f"token-by-token-{key}",
        )
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    replay_steps(hub, state, run)
    is_random = shown is not None and shown.is_random
    replay_panel(hub, state, run, note=f"**{RANDOM}** {OTHERS_SEE}" if is_random else OTHERS_SEE)


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
    if st.query_params.get(VIEW) == WHOLE:
        state.run_id = hub.adopt(trace).run_id
    else:
        play(hub, state, is_paused=False)
    return state


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


def _again_button(state: ReplayState, shown: TeachingRun | None) -> None:
    reason = shown.no_again if shown is not None else ""
    st.button(
        "Run again",
        key="run-again",
        icon=":material/refresh:",
        disabled=bool(reason),
        on_click=_again,
        args=(state,),
        help=reason or "Take this run's prompt and settings to the Live page; Start runs it again.",
    )


def _again(state: ReplayState) -> None:
    take_settings(settings_of_trace(state.trace))
    session().runs_page.wants_live = True


def _rename(store: RunStore, state: ReplayState) -> None:
    state.sentence = ""
    try:
        store.rename(state.key, value_of(f"{NAME}{state.key}"))
    except TokenByTokenError as error:
        state.sentence = str(error)


def _leave() -> None:
    st.query_params.clear()
    session().replay = None
