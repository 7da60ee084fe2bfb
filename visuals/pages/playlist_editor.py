"""One playlist on its page: its title, what can be done with it, its items, and runs to add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from inference.runs.playlist_file import playlist_json
from inference.runs.playlists import (
    LONGEST_TITLE,
    Playlist,
    PlaylistItem,
    one_line,
    with_items,
    with_runs_inside,
)
from inference.runs.recordings import numbered_runs
from visuals.charts.units import counted
from visuals.pages.current_item import (
    PLAYLIST,
    SHIPPED_LIST,
    go_to_item,
    item_title,
    opened_playlist,
)
from visuals.pages.markdown import escaped, quoted
from visuals.pages.playlist_desk import PlaylistDesk
from visuals.pages.playlist_items import playlist_items
from visuals.pages.session import bound, change, field_of, value_of
from visuals.pages.widget_keys import PLAYLIST_NAME

UNTITLED = "Untitled playlist"
KEPT, RECORDED = "kept:", "recording:"  # before what is offered to be added


def playlist_editor(desk: PlaylistDesk, key: str) -> None:
    """Draw the playlist with this key; one that comes with the program can be copied only.

    Raises:
        RunFileError: It is not kept here, or its file was damaged.
    """
    playlist = opened_playlist(desk.playlists, key)
    is_ours = key != SHIPPED_LIST
    desk.take(key)
    if is_ours:
        _title(desk, playlist)
    else:
        st.subheader(quoted(playlist.title), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="pl-head"):
        _actions(desk, playlist, is_ours=is_ours)
    if desk.state.sentence:
        st.error(escaped(desk.state.sentence), icon=":material/error:")
    playlist_items(desk, playlist, is_ours=is_ours)
    if is_ours:
        _adding(desk)


def show_begun(desk: PlaylistDesk, playlist: Playlist) -> None:
    """Keep another playlist and have the address name it."""
    if key := desk.begin(playlist):
        show_playlist(key)


def show_playlist(key: str) -> None:
    """Have the address name this playlist and none of its items."""
    st.query_params.from_dict({PLAYLIST: key})


def _title(desk: PlaylistDesk, playlist: Playlist) -> None:
    key = f"{PLAYLIST_NAME}{desk.state.revision}"
    st.text_input(
        "Title",
        value=playlist.title,
        key=key,
        placeholder=UNTITLED,
        max_chars=LONGEST_TITLE,
        on_change=_retitle,
        args=(desk, key),
    )


def _actions(desk: PlaylistDesk, playlist: Playlist, *, is_ours: bool) -> None:
    """Draw what can be done with the list as a whole."""
    st.button(
        "Play",
        key="playlist-play",
        icon=":material/play_arrow:",
        type="primary",
        disabled=not playlist.items,
        on_click=go_to_item,
        args=(1,),
        help="Show the first run with its note; Next goes on.",
    )
    if is_ours:
        st.button(
            "Undo",
            key="playlist-undo",
            icon=":material/undo:",
            disabled=not desk.state.former,
            on_click=desk.undo,
            help="Take back the last change of this list.",
        )
    else:
        st.button(
            "Make a copy to change",
            key="playlist-copy",
            icon=":material/content_copy:",
            on_click=show_begun,
            args=(desk, playlist),
        )
    with st.popover("Download", icon=":material/download:", key="playlist-downloads"):
        _download(
            "With its runs inside",
            "whole",
            lambda: playlist_json(with_runs_inside(playlist, desk.runs)),
            help_text="For others: the list holds every kept run whole, and plays anywhere.",
        )
        _download(
            "The list alone",
            "list",
            lambda: playlist_json(playlist),
            help_text="Small: it names the runs, which have to be kept where it is opened.",
        )
    if is_ours:
        st.button(
            "Delete",
            key="playlist-delete",
            icon=":material/delete:",
            on_click=_delete,
            args=(desk,),
            help="Take this list away; its runs stay.",
        )
    st.caption(counted(len(playlist.items), "run"))


def _download(label: str, name: str, content: Callable[[], str], *, help_text: str) -> None:
    st.download_button(
        label,
        data=content,
        file_name="token-by-token-playlist.json",
        mime="application/json",
        key=f"playlist-save-{name}",
        on_click="ignore",
        help=help_text,
    )


def _adding(desk: PlaylistDesk) -> None:
    """Draw the choice of runs, those kept first, and the button that adds them."""
    offered = [f"{KEPT}{entry.key}" for entry in desk.runs.entries() if not entry.problem]
    offered += [f"{RECORDED}{name}" for name in numbered_runs()]
    titles = {option: item_title(_new(option), desk.runs) for option in offered}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="pl-add"):
        st.multiselect(
            "Add runs",
            offered,
            format_func=lambda option: one_line(titles[option], LONGEST_TITLE),
            placeholder="Kept runs and recorded ones",
            **bound("playlist-adding", offered),
        )
        st.button(
            "Add",
            key="playlist-add",
            icon=":material/add:",
            disabled=not field_of("playlist-adding"),
            on_click=_add,
            args=(desk,),
        )


def _new(option: str) -> PlaylistItem:
    """Return the item of a run that is offered."""
    if option.startswith(KEPT):
        return PlaylistItem(kept=option.removeprefix(KEPT))
    return PlaylistItem(recording=option.removeprefix(RECORDED))


def _add(desk: PlaylistDesk) -> None:
    added = tuple(_new(option) for option in field_of("playlist-adding"))
    desk.rearrange(lambda playlist: with_items(playlist, added))
    change(**{"playlist-adding": ()})


def _retitle(desk: PlaylistDesk, key: str) -> None:
    title = one_line(value_of(key) or "", LONGEST_TITLE)
    desk.change(lambda playlist: replace(playlist, title=title))


def _delete(desk: PlaylistDesk) -> None:
    if desk.delete():
        st.query_params.clear()
