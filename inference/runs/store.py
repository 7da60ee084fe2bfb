"""The runs kept on disk: a folder of run files, each with a small entry beside it for the list.

An entry holds what the list shows and the name given to the run; one that is missing or out of date
is made again from its run file. Every file is replaced in one stroke, so two servers may share a
folder. ``TOKEN_BY_TOKEN_DATA`` moves the folder. Where the runs take more than they may, deleted
ones go first, then the oldest without a name. No torch.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from inference.records.errors import InputError, RunFileError
from inference.records.run import RunTrace
from inference.runs.journals import SUFFIX as JOURNAL_SUFFIX
from inference.runs.journals import Journal, no_room, recovered
from inference.runs.run_file import read, write
from inference.runs.store_entries import (
    RunEntry,
    entry_from_json,
    entry_of,
    entry_to_json,
    is_current,
)
from inference.runs.store_room import MEGABYTE, StoreRoom, bytes_below, remove_oldest
from inference.storage.atomic_write import replace_file
from inference.storage.folders import data_folder, private_folder

log = logging.getLogger(__name__)

RUN_SUFFIX = ".json.gz"
ENTRY_SUFFIX = ".entry.json"
TRASH_S = 7 * 24 * 3600.0
RUN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class _CachedEntry:
    """An entry in memory, and the state of the files it was read from."""

    stamp: tuple[int, ...]
    entry: RunEntry


class RunStore:
    """The runs of one folder; safe from several threads and several processes."""

    def __init__(self, folder: Path | None = None, *, most_bytes: int | None = None) -> None:
        """Open the runs of a folder, there or not.

        Args:
            folder: The user's data folder unless given.
            most_bytes: What they may take together; None for any amount.
        """
        self.most_bytes = most_bytes
        self.folder = (folder or data_folder()) / "runs"
        self._lock = threading.Lock()
        self._cached: dict[str, _CachedEntry] = {}
        self._room_lock = threading.Lock()  # of what is removed, and the count of it
        self._removed = self._removed_bytes = 0

    # Reading

    def entries(self) -> tuple[RunEntry, ...]:
        """Return an entry for each run, the newest first; damaged ones say what is wrong."""
        entries = [self._entry(key) for key in self._keys(self.folder)]
        return tuple(
            sorted((one for one in entries if one), key=lambda one: one.started_at, reverse=True)
        )

    def entry(self, key: str) -> RunEntry | None:
        """Return the entry of one run; None when it is not kept."""
        return self._entry(key) if RUN_KEY.fullmatch(key) else None

    def open(self, key: str) -> RunTrace:
        """Return a run.

        Raises:
            RunFileError: It is not kept here, or its file was damaged.
        """
        if not RUN_KEY.fullmatch(key) or not self._run_path(key).exists():
            msg = f"run {key[:80]} is not kept here; open its run file instead"
            raise RunFileError(msg)
        return read(self._run_path(key))[0]

    def room(self) -> StoreRoom:
        """Return how much the runs take, and what made room since the program's start."""
        return StoreRoom(
            used_bytes=bytes_below(self.folder),
            most_bytes=self.most_bytes,
            removed=self._removed,
            removed_bytes=self._removed_bytes,
        )

    # Writing

    def save(self, trace: RunTrace, name: str = "") -> RunEntry:
        """Keep a run and return its entry; the run keeps every value it has.

        A run that is kept already is replaced when it is the same run, grown; another run of the
        same id gets a key of its own. Others make room for it where all take more than they may.

        Raises:
            InputError: There is no room, or the folder may not be written.
        """
        key = self._key_for(trace)
        try:
            private_folder(self.folder)
            write(trace, self._run_path(key), is_private=True)
            former = self.entry(key)
            entry = entry_of(trace, key, self._run_path(key).stat().st_size)
            entry = replace(entry, name=name or (former.name if former else ""))
            self._write_entry(key, entry)
        except OSError as error:
            raise InputError(no_room(self.folder, error)) from error
        self._make_room(key)
        return entry

    def rename(self, key: str, name: str) -> None:
        """Give a run a name; an empty one takes it away.

        Raises:
            InputError: It is not kept here, the folder may not be written, or runs with names take
                all the room already.
        """
        entry = self.entry(key)
        if entry is None:
            msg = f"run {key[:80]} is not kept here any more"
            raise InputError(msg)
        if name.strip() and not entry.name:
            self._check_room_for_names(entry)
        named = replace(entry, name=" ".join(name.split())[:MAX_NAME])
        try:
            self._write_entry(key, named)
        except OSError as error:
            raise InputError(no_room(self.folder, error)) from error

    def _check_room_for_names(self, unnamed: RunEntry) -> None:
        """Raise InputError where one more that stays leaves no room for those that come."""
        if self.most_bytes is None:
            return
        named_bytes = sum(one.file_bytes for one in self.entries() if one.name)
        if named_bytes + unnamed.file_bytes > self.most_bytes:
            msg = f"runs with a name take {named_bytes / MEGABYTE:.0f} MB of the "
            msg += f"{self.most_bytes / MEGABYTE:.0f} that all may take, and are never removed to "
            msg += "make room; delete one, or take its name away"
            raise InputError(msg)

    def delete(self, keys: Iterable[str]) -> None:
        """Put runs aside; ``restore`` brings them back within a week.

        Raises:
            InputError: The folder may not be written.
        """
        self._move(keys, self.folder, self._trash)

    def restore(self, keys: Iterable[str]) -> None:
        """Bring deleted runs back.

        Raises:
            InputError: The folder may not be written.
        """
        self._move(keys, self._trash, self.folder)

    # Growing runs

    def journal(self, run_id: str) -> Journal:
        """Return the journal of a run that is about to grow."""
        return Journal(self.folder / f"{run_id}{JOURNAL_SUFFIX}")

    def recover(self) -> tuple[RunEntry, ...]:
        """Keep the runs that a program left unfinished, and empty the trash of what is old.

        Journals that another living program writes are left alone.

        Raises:
            InputError: There is no room, or the folder may not be written.
        """
        self._purge()
        saved = [self._recovered(path) for path in sorted(self.folder.glob(f"*{JOURNAL_SUFFIX}"))]
        self._make_room("")
        return tuple(entry for entry in saved if entry)

    def _recovered(self, path: Path) -> RunEntry | None:
        try:
            trace = recovered(path)
        except RunFileError:
            path.unlink(missing_ok=True)  # it holds not even the run's beginning
            return None
        if trace is None:
            return None
        entry = self.save(trace) if trace.events else None
        path.unlink(missing_ok=True)
        return entry

    # Under the hood

    @property
    def _trash(self) -> Path:
        return self.folder / "trash"

    def _run_path(self, key: str) -> Path:
        return self.folder / f"{key}{RUN_SUFFIX}"

    def _entry_path(self, key: str) -> Path:
        return self.folder / f"{key}{ENTRY_SUFFIX}"

    def _write_entry(self, key: str, entry: RunEntry) -> None:
        replace_file(self._entry_path(key), entry_to_json(entry), is_private=True)

    def _keys(self, folder: Path) -> list[str]:
        names = (path.name.removesuffix(RUN_SUFFIX) for path in folder.glob(f"*{RUN_SUFFIX}"))
        return [name for name in names if RUN_KEY.fullmatch(name)]

    def _entry(self, key: str) -> RunEntry | None:
        """Return an entry from memory while its files stand as they were, else from the files."""
        try:
            run_stat = self._run_path(key).stat()
        except OSError:
            return None  # deleted, here or by another server
        stamp = [run_stat.st_size, run_stat.st_mtime_ns]
        with suppress(OSError):
            stamp.append(self._entry_path(key).stat().st_mtime_ns)
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and cached.stamp == tuple(stamp):
            return cached.entry
        entry = self._read_entry(key, run_stat.st_size)
        with self._lock:
            self._cached[key] = _CachedEntry(tuple(stamp), entry)
        return entry

    def _read_entry(self, key: str, file_bytes: int) -> RunEntry:
        """Return the entry file's content, made again from the run file where it does not fit."""
        kept = None
        with suppress(OSError, ValueError):
            kept = entry_from_json(self._entry_path(key).read_bytes())
        if kept is not None and is_current(kept, key, file_bytes):
            return kept
        try:
            entry = entry_of(read(self._run_path(key))[0], key, file_bytes)
        except RunFileError as error:
            return RunEntry(key=key, file_bytes=file_bytes, problem=str(error))
        entry = replace(entry, name=kept.name if kept is not None else "")
        with suppress(OSError):  # it is only made again the next time
            self._write_entry(key, entry)
        return entry

    def _key_for(self, trace: RunTrace) -> str:
        key = trace.info.run_id
        if not RUN_KEY.fullmatch(key):
            return secrets.token_urlsafe(6)
        if not self._run_path(key).exists():
            return key
        with suppress(RunFileError):
            kept = read(self._run_path(key))[0]
            is_same = kept.info == trace.info and kept.requests == trace.requests
            if is_same and trace.events[: len(kept.events)] == kept.events:
                return key
        return secrets.token_urlsafe(6)

    def _move(self, keys: Iterable[str], source: Path, target: Path) -> None:
        try:
            private_folder(target)
            for key in filter(RUN_KEY.fullmatch, keys):
                for suffix in (RUN_SUFFIX, ENTRY_SUFFIX):
                    with suppress(FileNotFoundError):  # moved by another server, or no entry yet
                        moved = (source / f"{key}{suffix}").replace(target / f"{key}{suffix}")
                        if target == self._trash:
                            os.utime(moved)
        except OSError as error:
            msg = f"{self.folder} cannot be changed: {error.strerror or error}; check the folder"
            raise InputError(msg) from error

    def _make_room(self, spared: str) -> None:
        """Remove what is in the trash, then the oldest runs without a name, until all fits.

        Args:
            spared: The run that the room is for.
        """
        with self._room_lock:
            excess_bytes = self.room().excess_bytes
            if not excess_bytes:
                return
            _, freed_bytes = remove_oldest(
                [(path,) for path in self._trash.glob("*")], excess_bytes
            )
            unnamed = [
                (self._run_path(entry.key), self._entry_path(entry.key))
                for entry in self.entries()
                # What cannot be read here may be a later version's.
                if not (entry.name or entry.problem or entry.key == spared)
            ]
            removed, removed_bytes = remove_oldest(unnamed, excess_bytes - freed_bytes)
            self._removed += removed
            self._removed_bytes += removed_bytes
        if removed:
            log.warning("to make room, %d of the oldest runs without a name were removed", removed)

    def _purge(self) -> None:
        """Remove what has been in the trash for a week, by the file system's own dates."""
        for path in self._trash.glob("*"):
            with suppress(OSError):
                if _wall_clock_s() - path.stat().st_mtime > TRASH_S:
                    path.unlink()


def _wall_clock_s() -> float:
    """Return the time of day in seconds, as files are dated."""
    return time.time_ns() / 1e9
