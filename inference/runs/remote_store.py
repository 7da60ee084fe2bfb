"""Runs of engines at an address kept on disk: a folder of their own beside that of local runs.

Every file is replaced in one stroke. Where they take more than they may, deleted ones go first,
then the oldest. No torch.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inference.figures.arrivals import arrival_figures
from inference.records.arrivals import RemoteRun
from inference.records.errors import InputError, RunFileError
from inference.records.status import RunState
from inference.runs.remote_file import read, to_json
from inference.runs.run_file import write_text
from inference.runs.store_room import StoreRoom, bytes_below, remove_oldest
from inference.storage.folders import data_folder, private_folder

SUFFIX = ".json.gz"
RUN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
HEAD_CHARACTERS = 300
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEntry:
    """A kept run of an engine elsewhere, as a list shows it.

    Attributes:
        key: Its name on disk and in addresses, which is the run's id.
        prompt: The beginning of the first prompt.
        requests: How many were sent.
        is_load: They were a load, and not prompts for their own sake.
        tokens: Output tokens of all requests; None where the engine does not say.
        ttft_s: Of a run of one request, as is ``tpot_s``.
        problem: Why the file cannot be read; empty when it can.
    """

    key: str
    prompt: str = ""
    address: str = ""
    engine: str = ""
    model_id: str = ""
    started_at: datetime = LONG_AGO
    state: RunState = RunState.FAILED
    requests: int = 0
    is_load: bool = False
    tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    problem: str = ""


class RemoteStore:
    """The remote runs of one folder; safe from several threads and several processes."""

    def __init__(self, folder: Path | None = None, *, most_bytes: int | None = None) -> None:
        """Open the runs of a folder, there or not.

        Args:
            folder: The user's data folder unless given.
            most_bytes: What they may take together; None for any amount.
        """
        self.folder = (folder or data_folder()) / "remote-runs"
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._cached: dict[str, tuple[tuple[int, int], RemoteEntry]] = {}

    def save(self, run: RemoteRun) -> None:
        """Keep a run.

        Raises:
            InputError: There is no room, or the folder may not be written.
        """
        path = self._path(run.run_id)
        try:
            private_folder(self.folder)
        except OSError as error:
            msg = f"{self.folder} cannot be made: {error.strerror or error}; check the folder"
            raise InputError(msg) from error
        write_text(to_json(run), path, is_private=True)
        self._make_room(path)

    def open(self, key: str) -> RemoteRun:
        """Return a run.

        Raises:
            RunFileError: It is not kept here, or its file was damaged.
        """
        if not self.has(key):
            msg = f"run {key[:80]} is not kept here; open its run file instead"
            raise RunFileError(msg)
        return read(self._path(key))[0]

    def has(self, key: str) -> bool:
        """Tell whether a run is kept under this key."""
        return RUN_KEY.fullmatch(key) is not None and self._path(key).is_file()

    def entries(self, most: int) -> tuple[RemoteEntry, ...]:
        """Return an entry for each of the newest runs; damaged ones say what is wrong."""
        dated: list[tuple[int, int, str]] = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # removed by another server
                stat = path.stat()
                dated.append((stat.st_mtime_ns, stat.st_size, path.name.removesuffix(SUFFIX)))
        newest = sorted(dated, reverse=True)[:most]
        return tuple(self._entry(key, (modified_ns, size)) for modified_ns, size, key in newest)

    def delete(self, keys: Iterable[str]) -> None:
        """Put runs aside; ``restore`` brings them back until room is needed.

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

    @property
    def _trash(self) -> Path:
        return self.folder / "trash"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _entry(self, key: str, stamp: tuple[int, int]) -> RemoteEntry:
        """Return an entry from memory while its file stands as it was, else from the file."""
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        try:
            entry = entry_of(self.open(key))
        except RunFileError as error:
            entry = RemoteEntry(key=key, problem=str(error))
        with self._lock:
            self._cached[key] = (stamp, entry)
        return entry

    def _move(self, keys: Iterable[str], source: Path, target: Path) -> None:
        try:
            private_folder(target)
            for key in filter(RUN_KEY.fullmatch, keys):
                with suppress(FileNotFoundError):  # moved by another server
                    os.utime((source / f"{key}{SUFFIX}").replace(target / f"{key}{SUFFIX}"))
        except OSError as error:
            msg = f"{self.folder} cannot be changed: {error.strerror or error}; check the folder"
            raise InputError(msg) from error

    def _make_room(self, spared: Path) -> None:
        room = StoreRoom(used_bytes=bytes_below(self.folder), most_bytes=self._most_bytes)
        if room.excess_bytes:
            trash = [(path,) for path in self._trash.glob("*")]
            _, freed_bytes = remove_oldest(trash, room.excess_bytes)
            others = [(path,) for path in self.folder.glob(f"*{SUFFIX}") if path != spared]
            remove_oldest(others, room.excess_bytes - freed_bytes)


def entry_of(run: RemoteRun) -> RemoteEntry:
    """Return the entry of a run."""
    figures = [arrival_figures(request) for request in run.requests]
    totals = [one.counts.total for one in figures]
    known = [total for total in totals if total is not None]
    alone = figures[0] if len(figures) == 1 else None
    first, last = run.requests[0], run.requests[-1]
    return RemoteEntry(
        key=run.run_id,
        prompt=first.ask.prompt_text[:HEAD_CHARACTERS],
        address=run.endpoint.address,
        engine=f"{run.endpoint.engine.value} {run.endpoint.version}".strip(),
        model_id=first.ask.model_id,
        started_at=run.started_at if run.started_at.tzinfo else LONG_AGO,
        state=last.state,
        requests=len(run.requests),
        is_load=run.load is not None,
        tokens=sum(known) if len(known) == len(totals) else None,
        ttft_s=alone.ttft_s if alone is not None else None,
        tpot_s=alone.tpot_s if alone is not None else None,
    )
