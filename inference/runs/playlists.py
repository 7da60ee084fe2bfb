"""Playlists: runs in the order in which somebody shows them, each with a note of one line.

An item names its run, a recording that comes with the program or one that is kept, or holds it
whole, so that the list can be given to others. Every change gives another list. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference.records.errors import InputError, RunFileError
from inference.records.run import RunTrace
from inference.runs.recordings import numbered_runs
from inference.runs.store import RunStore

LONGEST_TITLE = 120
LONGEST_NOTE = 300
MOST_ITEMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaylistItem:
    """One run of a list, named or whole.

    Attributes:
        recording: Name of a recording that comes with the program; empty where it is none.
        kept: Key of a kept run; empty likewise.
        run: The run itself; None where it is named.
        note: Shown above the run.
        panel: The panel shown at first; empty for all of them.
        step: Steps shown at first; None to play from the beginning.
        problem: Why what a file says of it cannot be used; empty where it can.
        unread: What the file says of it then, as JSON, which is written back as it is.
    """

    recording: str = ""
    kept: str = ""
    run: RunTrace | None = None
    note: str = ""
    panel: str = ""
    step: int | None = None
    problem: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playlist:
    """Runs in order under a title."""

    title: str = ""
    items: tuple[PlaylistItem, ...] = ()


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, cut where it is too long."""
    return " ".join(text.split())[:longest]


def with_items(playlist: Playlist, added: Sequence[PlaylistItem]) -> Playlist:
    """Return the list with more items at its end.

    Raises:
        InputError: They are too many.
    """
    items = (*playlist.items, *added)
    if len(items) > MOST_ITEMS:
        msg = f"a playlist has {MOST_ITEMS} items at most; begin another one"
        raise InputError(msg)
    return replace(playlist, items=items)


def without(playlist: Playlist, index: int) -> Playlist:
    """Return the list without one item."""
    return replace(playlist, items=playlist.items[:index] + playlist.items[index + 1 :])


def moved(playlist: Playlist, index: int, by: int) -> Playlist:
    """Return the list with one item in the place of another, some places on; at an end it stays."""
    target = index + by
    if not (0 <= index < len(playlist.items) and 0 <= target < len(playlist.items)):
        return playlist
    items = list(playlist.items)
    items.insert(target, items.pop(index))
    return replace(playlist, items=tuple(items))


def with_item(playlist: Playlist, index: int, item: PlaylistItem) -> Playlist:
    """Return the list with another item in the place of one."""
    return replace(playlist, items=(*playlist.items[:index], item, *playlist.items[index + 1 :]))


def run_of(item: PlaylistItem, store: RunStore) -> RunTrace:
    """Return the run of an item.

    Raises:
        RunFileError: It is not here, or it is damaged.
    """
    if item.problem:
        raise RunFileError(item.problem)
    if item.run is not None:
        return item.run
    if item.kept:
        return store.open(item.kept)
    recorded = numbered_runs().get(item.recording)
    if recorded is None:
        msg = f"no recording named {item.recording[:80]} comes with this program; update it, or "
        msg += "take another run"
        raise RunFileError(msg)
    return recorded


def with_runs_inside(playlist: Playlist, store: RunStore) -> Playlist:
    """Return the list with each kept run in it whole; what cannot be read stays as it is."""
    return replace(playlist, items=tuple(_whole(item, store) for item in playlist.items))


def _whole(item: PlaylistItem, store: RunStore) -> PlaylistItem:
    if not item.kept:
        return item
    try:
        return replace(item, kept="", run=store.open(item.kept))
    except RunFileError:
        return item
