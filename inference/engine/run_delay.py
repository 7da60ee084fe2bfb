"""How long the threads that compute a step stood ready to run while something else had the cores.

Linux counts this for every thread, in nanoseconds, and nothing else is needed to know that another
program took time from a step. A thread that sleeps, such as a worker with nothing to do, is not
ready and counts nothing. Read before and after a step time, never inside the one of a CPU. No
torch.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

TASKS = Path("/proc/self/task")
RAN, WAITED = 0, 1  # fields of schedstat: time on a core, and ready and waiting for one, in ns
FIELDS_BYTES = 128  # three numbers of at most 20 digits
# Chosen: a reading takes 1.3 microseconds. Of more threads than these the figure is still a bound.
MOST_THREADS = 64
NOT_LINUX = "only Linux counts how long a thread waits for a processor"
NO_SCHEDSTAT = "this kernel does not count how long a thread waits for a processor"
logger = logging.getLogger(__name__)


class StepDelays(Protocol):
    """What the engine needs of a reader of run delays; opened for a run, closed at its end."""

    def __enter__(self) -> Self:
        """Get ready."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what is open."""
        ...

    def start(self) -> None:
        """Begin a step on the thread that runs it."""
        ...

    def stop(self) -> float | None:
        """Return the seconds lost since ``start``; None where they are not counted."""
        ...


class ThreadDelays:
    """Reads the run delay of the calling thread and of the native threads that compute for it.

    Threads of Python other than the caller's, such as the one that samples telemetry, compute no
    part of a step. While one of them runs, a thread that computes may wait for it; that is no other
    program's doing, and is taken off.

    The result is the largest delay among the threads. A step ends when its slowest thread does, so
    that much was lost at least; delays of several threads one after another may add up to more, and
    those at the same moment do not.

    Source:
        Linux, Documentation/scheduler/sched-stats.rst: ``/proc/<pid>/schedstat``, second field.
    """

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._computing = _Files(tasks, WAITED)
        self._beside = _Files(tasks, RAN)
        self._waited_before: dict[int, int] = {}
        self._ran_before: dict[int, int] = {}

    def __enter__(self) -> Self:
        """Return itself; files are opened as threads come."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all files."""
        self._computing.keep(set())
        self._beside.keep(set())

    def start(self) -> None:
        """Note the delays of the threads there are."""
        self._follow()
        self._ran_before = self._beside.read()
        self._waited_before = self._computing.read()

    def stop(self) -> float | None:
        """Return the seconds that other programs took at least; None where that is unknown."""
        waited = _grown(self._waited_before, self._computing.read())
        ran = _grown(self._ran_before, self._beside.read())
        return max(0, max(waited) - sum(ran)) / 1e9 if waited else None

    def _follow(self) -> None:
        """Follow the threads that have come, and leave those that have gone."""
        own = threading.get_native_id()
        python = {thread.native_id for thread in threading.enumerate()} - {own}
        try:
            tasks = {int(name) for name in os.listdir(self._tasks)}  # noqa: PTH208  four times as fast
        except (OSError, ValueError) as error:
            logger.debug("the threads of this process cannot be listed: %s", error)
            tasks = set[int]()
        self._computing.keep({own, *sorted(tasks - python - {own})[: MOST_THREADS - 1]})
        self._beside.keep(tasks & python)


class _Files:
    """One number of each of some threads, by files that stay open."""

    def __init__(self, tasks: Path, field: int) -> None:
        self._tasks = tasks
        self._field = field
        self._files: dict[int, int] = {}

    def keep(self, tids: set[int]) -> None:
        """Open the files of threads that have come, and close those of threads that have gone."""
        for tid in self._files.keys() - tids:
            os.close(self._files.pop(tid))
        for tid in tids - self._files.keys():
            try:
                self._files[tid] = os.open(self._tasks / str(tid) / "schedstat", os.O_RDONLY)
            except OSError as error:
                logger.debug("the delay of thread %s cannot be read: %s", tid, error)

    def read(self) -> dict[int, int]:
        """Return the nanoseconds of every thread that is still there."""
        found: dict[int, int] = {}
        for tid, file in self._files.items():
            try:
                found[tid] = int(os.pread(file, FIELDS_BYTES, 0).split(None, 2)[self._field])
            except (OSError, ValueError, IndexError) as error:
                logger.debug("the delay of thread %s cannot be read: %s", tid, error)
        return found


def _grown(before: dict[int, int], after: dict[int, int]) -> list[int]:
    """Return by how much the numbers of the threads that were there all along have grown."""
    return [number - before[tid] for tid, number in after.items() if tid in before]


def why_unknown(tasks: Path = TASKS) -> str:
    """Return why run delays are not counted here, in a sentence; empty where they are."""
    if sys.platform != "linux":
        return NOT_LINUX
    with ThreadDelays(tasks) as delays:
        delays.start()
        return "" if delays.stop() is not None else NO_SCHEDSTAT
