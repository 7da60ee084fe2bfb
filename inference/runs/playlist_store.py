"""The playlists kept on disk: one file each, beside the kept runs. No torch.

Every file is replaced in one stroke; one that is deleted stays in ``trash`` until others follow it
there and it is a week old.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inference.records.errors import InputError, RunFileError
from inference.runs.playlist_file import MAX_PLAYLIST_BYTES, playlist_json, read_playlist
from inference.runs.playlists import Playlist
from inference.storage.atomic_write import replace_file
from inference.storage.folders import data_folder, private_folder

SUFFIX = ".playlist.json"
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_PLAYLISTS = 200
MOST_BYTES = 256 * 1024 * 1024  # of all of them
TRASH_S = 7 * 24 * 3600.0
_Stamp = tuple[int, int]  # when a file was changed, and its size


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaylistEntry:
    """One playlist of the list.

    Attributes:
        key: Its name on disk and in addresses.
        items: How many it has.
        problem: Why its file cannot be read; empty where it can.
    """

    key: str
    title: str = ""
    items: int = 0
    problem: str = ""


class PlaylistStore:
    """The playlists of one folder; safe from several threads and several processes."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open those of a folder, there or not; the user's data folder unless given."""
        self.folder = (folder or data_folder()) / "playlists"
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[_Stamp, PlaylistEntry]] = {}
        self._latest: tuple[str, _Stamp, Playlist] | None = None  # one alone: they may be large

    def entries(self) -> tuple[PlaylistEntry, ...]:
        """Return all of them by their titles; damaged ones say what is wrong."""
        keys = [path.name.removesuffix(SUFFIX) for path in self.folder.glob(f"*{SUFFIX}")]
        entries = [self._entry(key) for key in keys if KEY.fullmatch(key)]
        return tuple(sorted(entries, key=lambda entry: (entry.title.casefold(), entry.key)))

    def open(self, key: str) -> Playlist:
        """Return a playlist.

        Raises:
            RunFileError: It is not kept here, or its file was damaged.
        """
        stamp = self._stamp(key) if KEY.fullmatch(key) else None
        if stamp is None:
            msg = f"playlist {key[:80]} is not kept here; open its file instead"
            raise RunFileError(msg)
        with self._lock:
            latest = self._latest
        if latest is not None and latest[:2] == (key, stamp):
            return latest[2]
        try:
            content = self._path(key).read_bytes()
        except OSError as error:
            msg = f"{self._path(key)} cannot be read: {error.strerror or error}; check the folder"
            raise RunFileError(msg) from error
        playlist = read_playlist(content)
        with self._lock:
            self._latest = (key, stamp, playlist)
        return playlist

    def save(self, playlist: Playlist, key: str = "") -> str:
        """Keep a playlist in the place of the one with this key, or as another; return its key.

        Raises:
            InputError: There is no room, or the folder may not be written.
            RunFileError: It is too large, or holds a number that is not finite.
        """
        content = playlist_json(playlist).encode()
        if len(content) > MAX_PLAYLIST_BYTES:
            msg = f"the playlist is larger than {MAX_PLAYLIST_BYTES >> 20} MiB; take runs out of it"
            raise RunFileError(msg)
        if not KEY.fullmatch(key):
            self._check_room(len(content))
            key = secrets.token_urlsafe(6)
        try:
            private_folder(self.folder)
            replace_file(self._path(key), content, is_private=True)
        except OSError as error:
            msg = f"the playlist cannot be kept in {self.folder}: {error.strerror or error}; free "
            msg += "some room there"
            raise InputError(msg) from error
        return key

    def delete(self, key: str) -> None:
        """Put a playlist aside; ``restore`` brings it back within a week.

        Raises:
            InputError: The folder may not be written.
        """
        self._move(key, self.folder, self._trash)
        for path in self._trash.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                if time.time_ns() / 1e9 - path.stat().st_mtime > TRASH_S:
                    path.unlink()

    def restore(self, key: str) -> None:
        """Bring a deleted playlist back.

        Raises:
            InputError: The folder may not be written.
        """
        self._move(key, self._trash, self.folder)

    @property
    def _trash(self) -> Path:
        return self.folder / "trash"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _stamp(self, key: str) -> _Stamp | None:
        """Return the state of a playlist's file; None where there is none."""
        with suppress(OSError):
            state = self._path(key).stat()
            return (state.st_mtime_ns, state.st_size)
        return None

    def _entry(self, key: str) -> PlaylistEntry:
        stamp = self._stamp(key)
        with self._lock:
            known = self._entries.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            playlist = self.open(key)
        except RunFileError as error:
            entry = PlaylistEntry(key=key, problem=str(error))
        else:
            entry = PlaylistEntry(key=key, title=playlist.title, items=len(playlist.items))
        if stamp is not None:
            with self._lock:
                self._entries[key] = (stamp, entry)
        return entry

    def _check_room(self, more_bytes: int) -> None:
        sizes: list[int] = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # deleted meanwhile
                sizes.append(path.stat().st_size)
        if len(sizes) >= MOST_PLAYLISTS or sum(sizes) + more_bytes > MOST_BYTES:
            msg = f"{len(sizes)} playlists of {sum(sizes) / 1e6:.0f} MB are kept here, as many as "
            msg += "there may be; delete one first"
            raise InputError(msg)

    def _move(self, key: str, source: Path, target: Path) -> None:
        if not KEY.fullmatch(key):
            return
        try:
            private_folder(target)
            with suppress(FileNotFoundError):  # moved by another server
                moved = (source / f"{key}{SUFFIX}").replace(target / f"{key}{SUFFIX}")
                if target == self._trash:
                    os.utime(moved)
        except OSError as error:
            msg = f"{self.folder} cannot be changed: {error.strerror or error}; check the folder"
            raise InputError(msg) from error
