"""One item of a playlist: its note, its run playing, and the ways to the next and the previous."""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.runs.playlists import one_line, run_of
from inference.runs.store import RunStore
from visuals.live.hub import Hub
from visuals.pages.current_item import (
    ITEM,
    SHIPPED_LIST,
    CurrentItem,
    go_to_item,
    item_title,
)
from visuals.pages.markdown import escaped, quoted
from visuals.pages.page_states import ReplayState
from visuals.pages.playlist_desk import PlaylistDesk
from visuals.pages.presenter import stage_of_address, with_note
from visuals.pages.replay_panel import (
    VIEW,
    WHOLE,
    play,
    replay_controls,
    replay_panel,
    replay_steps,
)
from visuals.pages.session import bound, field_of
from visuals.words.panels import PANEL_TITLES
from visuals.words.teaching import RANDOM

LONGEST_TITLE = 90


def playlist_player(hub: Hub, desk: PlaylistDesk, current: CurrentItem) -> None:
    """Draw the item; where its run cannot be shown, say why and offer the others."""
    _head(current, desk.runs)
    with st.container(key="playlist-note", gap="xsmall"):
        if current.item.note:
            st.markdown(_note(current))
    shows = current.shows
    if shows is not None and shows.look_at != current.item.note:
        st.markdown(shows.look_at)
    try:
        replay = _replay(hub, desk, current)
    except TokenByTokenError as error:
        st.error(f"This run cannot be shown: {escaped(str(error))}", icon=":material/error:")
        return
    run = hub.find(replay.run_id) or play(hub, replay, is_paused=True)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="xsmall", key="replay-controls"
    ):
        replay_controls(hub, replay, run)
        panel = _panel(current)
    replay_steps(hub, replay, run)
    stage = stage_of_address(panel)  # a presenter begins with this panel, and chooses among all
    replay_panel(
        hub,
        replay,
        run,
        note=f"**{RANDOM}**" if shows is not None and shows.is_random else "",
        panels=(panel,) if panel else None,
        stage=with_note(stage, current.item.note),
    )


def _note(current: CurrentItem) -> str:
    """Return the note as Markdown; one that a user wrote is kept apart from our own words."""
    is_ours = current.key == SHIPPED_LIST
    return escaped(current.item.note) if is_ours else quoted(current.item.note)


def _head(current: CurrentItem, runs: RunStore) -> None:
    """Draw where in the list this is, and the ways on."""
    with st.container(
        horizontal=True,
        horizontal_alignment="distribute",
        vertical_alignment="center",
        gap="small",
        key="playlist-head",
    ):
        with st.container(gap=None, width="content"):
            if current.playlist.title:
                st.caption(quoted(current.playlist.title))
            name = one_line(item_title(current.item, runs), LONGEST_TITLE)
            title = escaped(name) if current.item.recording else quoted(name)
            st.subheader(
                f"{current.number} of {current.count}: {title}", anchor=False, width="content"
            )
        with st.container(horizontal=True, gap="xsmall", width="content"):
            st.button(
                "All items", key="playlist-leave", icon=":material/list:", on_click=_leave_item
            )
            _way("Back", current, -1, icon=":material/arrow_back:", shortcut="B")
            _way("Next", current, 1, icon=":material/arrow_forward:", shortcut="N")


def _way(label: str, current: CurrentItem, by: int, *, icon: str, shortcut: str) -> None:
    target = current.number + by
    st.button(
        label,
        key=f"playlist-{label.lower()}",
        icon=icon,
        disabled=not 1 <= target <= current.count,
        on_click=partial(_go, target),
        shortcut=shortcut,
    )


def _go(number: int) -> None:
    st.query_params.pop(VIEW, None)
    go_to_item(number)


def _leave_item() -> None:
    st.query_params.pop(VIEW, None)
    st.query_params.pop(ITEM, None)


def _panel(current: CurrentItem) -> str:
    """Return the one panel that is shown, after its switch; empty for all of them."""
    panel = current.item.panel
    if panel not in PANEL_TITLES:
        if panel:
            st.caption(f"There is no panel {escaped(panel)}, so all of them are shown.")
        return ""
    st.toggle("All panels", **bound("playlist-all"))
    return "" if field_of("playlist-all") else panel


def _replay(hub: Hub, desk: PlaylistDesk, current: CurrentItem) -> ReplayState:
    """Return what is played, from where the item begins when another one was shown before.

    Raises:
        RunFileError: Its run is not here, or it is damaged.
    """
    key, state = f"{current.key}/{current.number}", desk.state
    if state.replay is not None and state.replay.key == key and state.shown == current.item:
        return state.replay
    replay = ReplayState(key=key, trace=run_of(current.item, desk.runs), run_id="")
    state.replay, state.shown = replay, current.item
    step = current.item.step
    if st.query_params.get(VIEW) == WHOLE:
        replay.run_id = hub.adopt(replay.trace).run_id
    else:
        play(hub, replay, is_paused=step is not None, steps=step or 0)
    return replay
