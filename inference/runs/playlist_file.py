"""Playlists to files and back: JSON, ``.gz`` or not, bounded like run files.

What is wrong with one item is said of that item, which keeps what the file says of it; the others
are read. No torch.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from inference.records.errors import RunFileError
from inference.runs.playlists import (
    LONGEST_NOTE,
    LONGEST_TITLE,
    MOST_ITEMS,
    Playlist,
    PlaylistItem,
    one_line,
)
from inference.runs.run_file import MAX_TOKENS, read_bytes, to_json
from inference.runs.strict_reading import check_values, file_text

VERSION = 1
MAX_PLAYLIST_BYTES = 32 * 1024 * 1024
WHAT = "playlist"
LONGEST_NAME = 80


_Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class _Item(BaseModel):
    """What a file may say of an item."""

    model_config = ConfigDict(strict=True)

    recording: _Name = ""
    kept: _Name = ""
    run: dict[str, Any] | None = None
    note: str = ""
    panel: _Name = ""
    step: Annotated[int, Field(ge=0, le=MAX_TOKENS)] | None = None


def playlist_json(playlist: Playlist) -> str:
    """Return the file of a playlist.

    Raises:
        RunFileError: A run in it holds a number that is not finite.
    """
    return json.dumps(
        {
            "playlist_version": VERSION,
            "title": playlist.title,
            "items": [_said(item) for item in playlist.items],
        },
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":") if any(item.run for item in playlist.items) else None,
        indent=None if any(item.run for item in playlist.items) else 1,
    )


def read_playlist(content: bytes) -> Playlist:
    """Return the playlist of a file's content, compressed or not.

    Raises:
        RunFileError: It is damaged, not ours, newer than this program, or too large.
    """
    text = file_text(content, WHAT, MAX_PLAYLIST_BYTES)
    check_values(text, WHAT)
    try:
        said: object = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        msg = f"the playlist is damaged or cut short: {error}; copy it again"
        raise RunFileError(msg) from error
    head = _head(said)
    items = head.get("items", [])
    if not isinstance(items, list) or not isinstance(head.get("title", ""), str):
        msg = (
            "the playlist is damaged: its title is no text or its items are no list; save it again"
        )
        raise RunFileError(msg)
    if len(items) > MOST_ITEMS:
        msg = f"the playlist has {len(items):,} items and this program takes {MOST_ITEMS}; make "
        msg += "several of it"
        raise RunFileError(msg)
    return Playlist(
        title=one_line(head.get("title", ""), LONGEST_TITLE), items=tuple(map(_item, items))
    )


def _head(said: object) -> dict[str, Any]:
    """Return what a playlist says, after a look at whether it is one that can be read."""
    if isinstance(said, list) or (isinstance(said, dict) and "schema_version" in said):
        msg = "the file is a run and no playlist; open it on the Runs page"
        raise RunFileError(msg)
    version = said.get("playlist_version") if isinstance(said, dict) else None
    if not isinstance(said, dict) or isinstance(version, bool) or not isinstance(version, int):
        msg = "the file is no playlist of this program; open one that was saved here"
        raise RunFileError(msg)
    if version > VERSION:
        msg = f"the playlist has version {version} and this program reads up to {VERSION}; update "
        msg += "the program"
        raise RunFileError(msg)
    if version < 1:
        msg = f"the playlist has version {version}, which never was; save it again"
        raise RunFileError(msg)
    return said


def _item(said: object) -> PlaylistItem:
    """Return an item, with what is wrong where it cannot be used."""
    note = said.get("note") if isinstance(said, dict) else None
    unread = PlaylistItem(
        note=one_line(note, LONGEST_NOTE) if isinstance(note, str) else "",
        unread=json.dumps(said, ensure_ascii=False),
    )
    if not isinstance(said, dict):
        return _refused(unread, "the file says nothing of it that could be used")
    try:
        fields = _Item.model_validate(said)
    except ValidationError as error:
        return _refused(unread, _complaint(error))
    if [bool(fields.recording), bool(fields.kept), fields.run is not None].count(True) != 1:
        return _refused(unread, "it has to name one recording or kept run, or hold one run")
    try:
        [run] = [None] if fields.run is None else read_bytes(json.dumps(fields.run).encode())
    except RunFileError as error:
        return _refused(unread, str(error))
    return PlaylistItem(
        recording=fields.recording,
        kept=fields.kept,
        run=run,
        note=unread.note,
        panel=fields.panel,
        step=fields.step,
    )


def _refused(unread: PlaylistItem, reason: str) -> PlaylistItem:
    return PlaylistItem(note=unread.note, unread=unread.unread, problem=reason)


def _said(item: PlaylistItem) -> object:
    """Return what a file says of an item; what could not be read is said as it was."""
    if item.unread:
        return json.loads(item.unread)
    said = {
        "recording": item.recording,
        "kept": item.kept,
        "run": json.loads(to_json(item.run)) if item.run is not None else None,
        "note": item.note,
        "panel": item.panel,
    }
    given = {name: value for name, value in said.items() if value}
    return given if item.step is None else {**given, "step": item.step}


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{field}: {message}" if field else message
