"""The Playlists page: runs in the order of a lecture, each with a note, to make, share and play."""

from __future__ import annotations

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.runs.playlist_file import read_playlist
from inference.runs.playlist_store import PlaylistEntry, PlaylistStore
from inference.runs.playlists import Playlist
from inference.runs.store import RunStore
from visuals.charts.units import counted
from visuals.live.hub import Hub
from visuals.pages.current_item import (
    ITEM,
    PLAYLIST,
    SHIPPED_LIST,
    current_item,
    opened_playlist,
)
from visuals.pages.markdown import escaped
from visuals.pages.playlist_desk import PlaylistDesk
from visuals.pages.playlist_editor import UNTITLED, playlist_editor, show_begun, show_playlist
from visuals.pages.playlist_player import playlist_player
from visuals.pages.session import enter_page, value_of
from visuals.pages.widget_keys import PLAYLIST_FILES

WELCOME = (
    "Put runs in the order in which you want to show them, with a note of one line each. A "
    "playlist plays without a model, and as a file it can hold its runs and be given to others."
)


def playlists_page(hub: Hub, runs: RunStore, playlists: PlaylistStore) -> None:
    """Draw the list of playlists, the one that the address names, or one of its items.

    Args:
        hub: Plays runs again.
        runs: The kept ones.
        playlists: Keeps the lists.
    """
    desk = PlaylistDesk(runs, playlists, enter_page("playlists").playlists_page)
    key = st.query_params.get(PLAYLIST)
    if key is None:
        _list(desk)
        return
    try:
        current = current_item(playlists)
        if current is not None:
            playlist_player(hub, desk, current)
            return
        _back()
        playlist_editor(desk, key)
    except TokenByTokenError as error:
        if ITEM in st.query_params:
            _back()
        st.error(escaped(str(error)), icon=":material/error:")


def _back() -> None:
    st.button("All playlists", key="playlist-back", icon=":material/arrow_back:", on_click=_leave)


def _leave() -> None:
    st.query_params.clear()


def _list(desk: PlaylistDesk) -> None:
    st.markdown(WELCOME)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="pl-tools"):
        st.button(
            "New playlist",
            key="playlist-new",
            icon=":material/add:",
            on_click=show_begun,
            args=(desk, Playlist()),
        )
        with st.popover("Open playlist files", icon=":material/upload_file:", key="pl-import"):
            key = f"{PLAYLIST_FILES}{desk.state.uploads}"
            st.file_uploader(
                "Playlist files",
                type=["json", "gz"],
                accept_multiple_files=True,
                key=key,
                on_change=_take_files,
                args=(desk, key),
                help="Files saved on this page, here or on another machine.",
            )
    _sentences(desk)
    shipped = opened_playlist(desk.playlists, SHIPPED_LIST)
    entries = desk.playlists.entries()
    with st.container(gap="small", key="pl-list"):
        _row(PlaylistEntry(key=SHIPPED_LIST, title=shipped.title, items=len(shipped.items)))
        for entry in entries:
            _row(entry)
    if not entries:
        st.caption("You have none of your own yet.")


def _row(entry: PlaylistEntry) -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"pl-row-{entry.key}"
    ):
        st.button(
            "Play",
            key=f"pl-list-play-{entry.key}",
            icon=":material/play_arrow:",
            disabled=not entry.items,
            on_click=_show_first,
            args=(entry.key,),
        )
        st.button(
            "Open",
            key=f"pl-list-open-{entry.key}",
            icon=":material/list:",
            disabled=bool(entry.problem),
            on_click=show_playlist,
            args=(entry.key,),
            help="Its runs, their notes, and what can be changed.",
        )
        with st.container(gap=None):
            st.text(entry.title or UNTITLED)
            if entry.problem:
                st.caption(f":red[{escaped(entry.problem)}]")
            else:
                st.caption(counted(entry.items, "run"))


def _show_first(key: str) -> None:
    st.query_params.from_dict({PLAYLIST: key, ITEM: "1"})


def _sentences(desk: PlaylistDesk) -> None:
    """Say what came of the last press, and offer to bring back what was deleted."""
    state = desk.state
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    for note in state.notes:
        st.info(escaped(note))
    state.notes = []
    if state.deleted:
        with st.container(horizontal=True, vertical_alignment="center", key="pl-undo-line"):
            st.markdown("The playlist is deleted.")
            st.button("Undo", key="playlist-restore", icon=":material/undo:", on_click=desk.restore)


def _take_files(desk: PlaylistDesk, key: str) -> None:
    """Keep each file that is a playlist, and say of the others why they are none."""
    state, problems = desk.state, list[str]()
    for upload in value_of(key) or ():
        try:
            playlist = read_playlist(upload.getvalue())
            desk.playlists.save(playlist)
        except TokenByTokenError as error:
            problems.append(f"{upload.name}: {error}.")
        else:
            state.notes.append(f"{upload.name}: {_taken(playlist)}")
    state.sentence = " ".join(problems)
    state.uploads += 1


def _taken(playlist: Playlist) -> str:
    """Return what was kept of a file, and what of it cannot be shown."""
    words = f"{counted(len(playlist.items), 'run')} kept as {playlist.title or UNTITLED}."
    damaged = [
        f"Item {number} cannot be shown: {item.problem}."
        for number, item in enumerate(playlist.items, start=1)
        if item.problem
    ]
    return " ".join((words, *damaged))
