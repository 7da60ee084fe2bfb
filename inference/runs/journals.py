"""A growing run on disk: one line a second with what is new, so that a crash loses little.

The first line is the run as it began, each later line a ``RunPart``. Reading stops at the first
line that is not whole, which is where the program was cut off. A lock file beside the journal says
that a living process writes it; the system lets go of it when the process ends. No torch.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import RootModel, ValidationError

from inference.records.errors import InputError, RunFileError
from inference.records.model import TokenPiece
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample
from inference.runs.replay import outputs_of
from inference.runs.run_file import STRICT, read_bytes, to_json, with_current_names
from inference.storage.folders import private_folder, private_opener

SUFFIX = ".jsonl"
CUT_OFF = "the program ended while this run was going; what was recorded until then is kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """What a run has gained since the line before."""

    events: tuple[StepEvent, ...]
    telemetry: tuple[TelemetrySample, ...]
    pieces: tuple[TokenPiece, ...]


class Journal:
    """The file of one growing run; one process writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(_lock_path(path), thread_local=False)
        self._written: RunTrace | None = None
        self._size = 0

    def append(self, trace: RunTrace) -> None:
        """Write what the run has gained since the last call.

        Raises:
            InputError: There is no room, or the folder may not be written; what was written before
                stands, and the next call writes what this one could not.
        """
        line = _line(trace, self._written)
        if line is None:
            return
        try:
            if self._written is None:
                private_folder(self._path.parent)
                self._lock.acquire(timeout=0)
            with open(self._path, "r+b" if self._size else "wb", opener=private_opener) as file:
                file.seek(self._size)
                file.truncate()  # a line that was cut short by a full disk
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, Timeout) as error:
            raise InputError(no_room(self._path.parent, error)) from error
        self._size += len(line)
        self._written = trace

    def remove(self) -> None:
        """Take the journal away: its run is kept elsewhere, or not worth it.

        A folder that may not be changed any more keeps it, to be recovered once more.
        """
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let go of the journal and leave it to be recovered."""
        self._lock.release(force=True)
        with suppress(OSError):  # a folder that became read-only; nobody holds the lock
            _lock_path(self._path).unlink(missing_ok=True)


def no_room(folder: Path, error: Exception) -> str:
    """Return the sentence of a folder that takes no more."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (
        f"the run cannot be kept in {folder}: {reason}; free some room there and make the run "
        "again, or save it as a run file from the page"
    )


def recovered(path: Path) -> RunTrace | None:
    """Return the run of a journal that nobody writes any more; None while somebody does.

    Raises:
        RunFileError: Not even the beginning of the run can be read.
    """
    lock = FileLock(_lock_path(path))
    try:
        with lock.acquire(timeout=0):
            trace = read_journal(path)
    except Timeout:
        return None
    _lock_path(path).unlink(missing_ok=True)
    return trace


def read_journal(path: Path) -> RunTrace:
    """Return the run as far as the journal has it, marked as cut off.

    Raises:
        RunFileError: Not even the beginning of the run can be read.
    """
    try:
        first, *lines = path.read_bytes().split(b"\n")
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise RunFileError(msg) from error
    begun = read_bytes(first)[0]
    events, telemetry, pieces = begun.events, begun.telemetry, begun.pieces
    for line in lines:
        try:
            part = _part_model().model_validate_json(with_current_names(line)).root
        except ValidationError:
            break  # written only in part
        events += part.events
        telemetry += part.telemetry
        pieces += part.pieces
    return replace(
        begun,
        events=events,
        telemetry=telemetry,
        pieces=pieces,
        outputs=outputs_of(begun.requests, events, pieces),
        state=RunState.FAILED,
        message=CUT_OFF,
    )


def _line(trace: RunTrace, written: RunTrace | None) -> bytes | None:
    """Return the next line of the journal; None when there is nothing new."""
    if written is None:
        return to_json(trace).encode() + b"\n"
    part = RunPart(
        events=trace.events[len(written.events) :],
        telemetry=trace.telemetry[len(written.telemetry) :],
        pieces=trace.pieces[len(written.pieces) :],
    )
    if not (part.events or part.telemetry):
        return None
    return _part_model()(part).model_dump_json().encode() + b"\n"


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


@cache
def _part_model() -> type[RootModel[RunPart]]:
    """Return the validator of a line, built at first use."""

    class Part(RootModel[RunPart]):
        model_config = STRICT

    return Part
