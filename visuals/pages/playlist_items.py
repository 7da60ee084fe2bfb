"""The items of one playlist in order: their runs, their notes, where each begins, what moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.runs.playlists import (
    LONGEST_NOTE,
    LONGEST_TITLE,
    Playlist,
    PlaylistItem,
    moved,
    one_line,
    run_of,
    with_item,
    without,
)
from inference.runs.store import RunStore
from visuals.pages.current_item import go_to_item, item_title
from visuals.pages.markdown import escaped, quoted
from visuals.pages.playlist_desk import PlaylistDesk
from visuals.pages.session import value_of
from visuals.pages.widget_keys import PLAYLIST_NOTE, PLAYLIST_SHOWN, PLAYLIST_STEP
from visuals.words.panels import PANEL_TITLES

ALL_PANELS = "all panels"
LAST_STEP = 1_000_000


def playlist_items(desk: PlaylistDesk, playlist: Playlist, *, is_ours: bool) -> None:
    """Draw every item; one that comes with the program can be played only."""
    if not playlist.items:
        st.info("No runs yet. Add some below, in the order in which you want to show them.")
    for index, item in enumerate(playlist.items):
        with st.container(border=True, gap="xsmall", key=f"pl-item-{index}"):
            _head(desk, playlist, index, is_ours=is_ours)
            if problem := _problem(item, desk.runs):
                st.markdown(f":red[This run cannot be shown: {escaped(problem)}]")
            if not is_ours or item.problem:
                st.markdown(quoted(item.note) if is_ours else escaped(item.note))
            else:
                _note(desk, index, item)
                _start(desk, index, item)


def _head(desk: PlaylistDesk, playlist: Playlist, index: int, *, is_ours: bool) -> None:
    """Draw an item's number and title, and its buttons."""
    title = one_line(item_title(playlist.items[index], desk.runs), LONGEST_TITLE)
    with st.container(
        horizontal=True,
        horizontal_alignment="distribute",
        vertical_alignment="center",
        gap="xsmall",
    ):
        name = escaped(title) if playlist.items[index].recording else quoted(title)
        st.markdown(f"**{index + 1}. {name}**", width="content")
        with st.container(horizontal=True, gap="xsmall", width="content"):
            _button("Play", index, "play_arrow", partial(go_to_item, index + 1))
            if not is_ours:
                return
            is_last = index == len(playlist.items) - 1
            for label, icon, edit, is_off in (
                ("Up", "arrow_upward", partial(moved, index=index, by=-1), index == 0),
                ("Down", "arrow_downward", partial(moved, index=index, by=1), is_last),
                ("Remove", "close", partial(without, index=index), False),
            ):
                _button(label, index, icon, partial(desk.rearrange, edit), is_off=is_off)


def _button(
    label: str, index: int, icon: str, press: Callable[[], None], *, is_off: bool = False
) -> None:
    st.button(
        label,
        key=f"pl-{label.lower()}-{index}",
        icon=f":material/{icon}:",
        type="tertiary",
        disabled=is_off,
        on_click=press,
    )


def _note(desk: PlaylistDesk, index: int, item: PlaylistItem) -> None:
    key = f"{PLAYLIST_NOTE}{desk.state.revision}-{index}"
    st.text_input(
        f"Note of item {index + 1}",
        value=item.note,
        key=key,
        placeholder="One line to say above the run",
        max_chars=LONGEST_NOTE,
        label_visibility="collapsed",
        on_change=_take,
        args=(desk, index, "note", key),
    )


def _start(desk: PlaylistDesk, index: int, item: PlaylistItem) -> None:
    """Draw where the item begins: at which panel, and after which step."""
    panel = PANEL_TITLES.get(item.panel, ALL_PANELS)
    step = "from the beginning" if item.step is None else f"paused after step {item.step:,}"
    names = ["", *PANEL_TITLES]
    with st.popover(f"Begins with {panel}, {step}", key=f"pl-start-{index}"):
        key = f"{PLAYLIST_SHOWN}{desk.state.revision}-{index}"
        st.selectbox(
            "Panel shown at first",
            names,
            index=names.index(item.panel) if item.panel in names else 0,
            format_func=lambda name: PANEL_TITLES.get(name, ALL_PANELS),
            key=key,
            on_change=_take,
            args=(desk, index, "panel", key),
        )
        key = f"{PLAYLIST_STEP}{desk.state.revision}-{index}"
        st.number_input(
            "Paused after step",
            min_value=0,
            max_value=LAST_STEP,
            value=None if item.step is None else min(item.step, LAST_STEP),
            placeholder="plays from the beginning",
            key=key,
            on_change=_take,
            args=(desk, index, "step", key),
            help="Empty: the run plays from its beginning.",
        )


def _take(desk: PlaylistDesk, index: int, field: str, key: str) -> None:
    """Take what a widget of an item says into the list."""
    value = value_of(key)
    if field == "note":
        value = one_line(value or "", LONGEST_NOTE)

    def edit(playlist: Playlist) -> Playlist:
        if index >= len(playlist.items):  # another tab has taken it out
            return playlist
        return with_item(playlist, index, replace(playlist.items[index], **{field: value}))

    desk.change(edit)


def _problem(item: PlaylistItem, runs: RunStore) -> str:
    """Return why the run of an item cannot be shown; empty where it can."""
    if item.kept and (entry := runs.entry(item.kept)) is not None:
        return entry.problem  # the run itself is read when it is played
    try:
        run_of(item, runs)
    except TokenByTokenError as error:
        return str(error)
    return ""
