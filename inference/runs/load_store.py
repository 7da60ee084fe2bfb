"""Loads kept on disk: a file for each, with a run for each step of its sweep. No torch.

A file is the run file that the command line writes and reads. Where they take more than they may,
the oldest go.
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inference.records.arrivals import RemoteRun
from inference.records.errors import InputError, RunFileError
from inference.runs.remote_file import read, to_json
from inference.runs.run_file import write_text
from inference.runs.store_room import StoreRoom, bytes_below, remove_oldest
from inference.storage.folders import data_folder, private_folder

SUFFIX = ".json.gz"
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLoad:
    """A load on disk: its name there, and how large its file is."""

    key: str
    file_bytes: int


class LoadStore:
    """The loads of one folder; safe from several threads and several processes."""

    def __init__(self, folder: Path | None = None, *, most_bytes: int | None = None) -> None:
        """Open the loads of a folder, there or not.

        Args:
            folder: The user's data folder unless given.
            most_bytes: What they may take together; None for any amount.
        """
        self.folder = (folder or data_folder()) / "loads"
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._latest: tuple[str, tuple[int, int], tuple[RemoteRun, ...]] | None = None

    def save(self, key: str, runs: tuple[RemoteRun, ...]) -> None:
        """Keep a load.

        Raises:
            InputError: There is no room, or the folder may not be written.
        """
        try:
            private_folder(self.folder)
        except OSError as error:
            msg = f"{self.folder} cannot be made: {error.strerror or error}; check the folder"
            raise InputError(msg) from error
        write_text(to_json(runs), self._path(key), is_private=True)
        room = StoreRoom(used_bytes=bytes_below(self.folder), most_bytes=self._most_bytes)
        if room.excess_bytes:
            others = (path for path in self.folder.glob(f"*{SUFFIX}") if path != self._path(key))
            remove_oldest(((path,) for path in others), room.excess_bytes)

    def open(self, key: str) -> tuple[RemoteRun, ...]:
        """Return the runs of a load.

        Raises:
            RunFileError: It is not kept here, or its file was damaged.
        """
        try:
            stat = self._path(key).stat() if KEY.fullmatch(key) else None
        except OSError:
            stat = None
        if stat is None:
            msg = f"load {key[:80]} is not kept here; open its file with the arrivals command"
            raise RunFileError(msg)
        stamp = (stat.st_mtime_ns, stat.st_size)
        with self._lock:
            latest = self._latest
        if latest is not None and latest[:2] == (key, stamp):
            return latest[2]
        runs = read(self._path(key))
        with self._lock:
            self._latest = (key, stamp, runs)
        return runs

    def entries(self) -> tuple[KeptLoad, ...]:
        """Return the loads kept, the newest first."""
        dated: list[tuple[int, KeptLoad]] = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            key = path.name.removesuffix(SUFFIX)
            with suppress(OSError):  # removed by another server
                stat = path.stat()
                if KEY.fullmatch(key):
                    dated.append((stat.st_mtime_ns, KeptLoad(key=key, file_bytes=stat.st_size)))
        return tuple(one for _, one in sorted(dated, key=lambda pair: pair[0], reverse=True))

    def delete(self, key: str) -> None:
        """Remove a load.

        Raises:
            InputError: The folder may not be written.
        """
        if not KEY.fullmatch(key):
            return
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            msg = f"{self.folder} cannot be changed: {error.strerror or error}; check the folder"
            raise InputError(msg) from error

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"
