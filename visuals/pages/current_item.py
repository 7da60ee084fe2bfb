"""Which item of which playlist the page's address names, for whatever page shows it.

``?playlist=KEY&item=N`` names one, ``current_item`` returns it, ``run_of`` its run, and
``go_to_item`` moves on. A playlist of all recorded runs comes with the program, under a key of its
own.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inference.records.errors import InputError
from inference.runs.playlist_store import PlaylistStore
from inference.runs.playlists import Playlist, PlaylistItem
from inference.runs.store import RunStore
from visuals.words.teaching import TEACHING, TITLE, TeachingRun, teaching_run

PLAYLIST, ITEM = "playlist", "item"  # in the address
SHIPPED_LIST = "recorded-runs"
ITEM_DIGITS = 6  # of a number that can be an item's


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentItem:
    """One item of a playlist, as a page shows it.

    Attributes:
        key: The playlist's.
        number: Its place in the list, from 1.
    """

    key: str
    playlist: Playlist
    number: int

    @property
    def item(self) -> PlaylistItem:
        """The item itself."""
        return self.playlist.items[self.number - 1]

    @property
    def count(self) -> int:
        """How many items the playlist has."""
        return len(self.playlist.items)

    @property
    def shows(self) -> TeachingRun | None:
        """What the recording is there to show; None for other runs."""
        return teaching_run(self.item.recording) if self.item.recording else None


def opened_playlist(playlists: PlaylistStore, key: str) -> Playlist:
    """Return the playlist with this key, kept here or come with the program.

    Raises:
        RunFileError: It is not kept here, or its file was damaged.
    """
    if key != SHIPPED_LIST:
        return playlists.open(key)
    items = (
        PlaylistItem(recording=one.name, note=one.look_at, panel=one.panel) for one in TEACHING
    )
    return Playlist(title=TITLE, items=tuple(items))


def current_item(playlists: PlaylistStore) -> CurrentItem | None:
    """Return the item that the address names; None where it names no playlist or no item.

    A number beyond the list stands for its last item, what is no number for its first.

    Raises:
        RunFileError: The playlist is not kept here, or its file was damaged.
        InputError: It has no items.
    """
    key, asked = st.query_params.get(PLAYLIST), st.query_params.get(ITEM)
    if key is None or asked is None:
        return None
    playlist = opened_playlist(playlists, key)
    if not playlist.items:
        msg = "this playlist has no runs yet; add some first"
        raise InputError(msg)
    is_number = asked.isascii() and asked.isdigit() and len(asked) <= ITEM_DIGITS
    number = min(max(int(asked) if is_number else 1, 1), len(playlist.items))
    return CurrentItem(key=key, playlist=playlist, number=number)


def go_to_item(number: int) -> None:
    """Have the address name another item of the same playlist; to be called before it is drawn."""
    st.query_params[ITEM] = str(number)


def item_title(item: PlaylistItem, runs: RunStore) -> str:
    """Return what the run of an item is called, whether it is here or not."""
    if item.recording:
        shown = teaching_run(item.recording)
        number = item.recording.removeprefix(shown.name).lstrip("-") if shown is not None else ""
        name = shown.title if shown is not None else item.recording
        return f"{name} ({number})" if number else name
    if item.kept:
        entry = runs.entry(item.kept)
        return entry.title if entry is not None else f"run {item.kept}"
    if item.run is not None and item.run.requests:
        return " ".join(item.run.requests[0].prompt_text.split())
    return "a run that cannot be read"
