"""Run delays read from a made-up /proc, and from the real one beside a program on the same core."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.engine import run_delay
from inference.engine.run_delay import ThreadDelays, why_unknown

linux_only = pytest.mark.skipif(sys.platform != "linux", reason=run_delay.NOT_LINUX)
WORKER, OTHER = 7_000_001, 7_000_002  # beyond any thread of this machine


class Tasks:
    """A folder that looks like /proc/self/task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, tid: int, delay_ns: int, ran_ns: int = 5_000_000) -> None:
        """Let a thread have waited and run this long in all."""
        (self.folder / str(tid)).mkdir(exist_ok=True)
        (self.folder / str(tid) / "schedstat").write_text(f"{ran_ns} {delay_ns} 12\n")


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    found = Tasks(tmp_path)
    found.put(threading.get_native_id(), 1_000)
    return found


def test_the_thread_that_waited_longest_bounds_what_a_step_lost(tasks: Tasks) -> None:
    tasks.put(WORKER, 40_000_000)
    with ThreadDelays(tasks.folder) as delays:
        delays.start()
        tasks.put(threading.get_native_id(), 2_001_000)
        tasks.put(WORKER, 45_000_000)

        assert delays.stop() == 0.005


def test_a_thread_that_sleeps_loses_nothing(tasks: Tasks) -> None:
    tasks.put(WORKER, 40_000_000)
    with ThreadDelays(tasks.folder) as delays:
        delays.start()

        assert delays.stop() == 0.0


def test_other_threads_of_python_compute_no_step(tasks: Tasks) -> None:
    """The thread that samples telemetry waits for a core that the step has."""
    is_over = threading.Event()
    sampler = threading.Thread(target=is_over.wait)
    sampler.start()
    assert sampler.native_id is not None
    tasks.put(sampler.native_id, 0)
    tasks.put(WORKER, 0)
    try:
        with ThreadDelays(tasks.folder) as delays:
            delays.start()
            tasks.put(sampler.native_id, 9_000_000)
            assert delays.stop() == 0.0

            delays.start()
            tasks.put(sampler.native_id, 9_000_000, ran_ns=5_400_000)
            tasks.put(WORKER, 1_000_000)
            assert delays.stop() == 0.0006  # what the sampler ran is no other program's doing
    finally:
        is_over.set()
        sampler.join()


def test_threads_may_come_and_go(tasks: Tasks) -> None:
    tasks.put(WORKER, 0)
    with ThreadDelays(tasks.folder) as delays:
        delays.start()
        (tasks.folder / str(WORKER) / "schedstat").unlink()
        (tasks.folder / str(WORKER)).rmdir()
        tasks.put(OTHER, 0)
        delays.start()
        tasks.put(OTHER, 3_000_000)

        assert delays.stop() == 0.003


def test_a_system_that_does_not_count_is_told_with_the_reason(tmp_path: Path) -> None:
    with ThreadDelays(tmp_path / "none") as delays:
        delays.start()

        assert delays.stop() is None
    assert why_unknown(tmp_path / "none") in {run_delay.NO_SCHEDSTAT, run_delay.NOT_LINUX}


def test_unreadable_numbers_are_not_known(tmp_path: Path) -> None:
    folder = tmp_path / str(threading.get_native_id())
    folder.mkdir()
    (folder / "schedstat").write_text("no numbers\n")
    with ThreadDelays(tmp_path) as delays:
        delays.start()

        assert delays.stop() is None


@linux_only
def test_files_are_closed_at_the_end() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a count
    with ThreadDelays() as delays:
        delays.start()
        assert len(os.listdir("/proc/self/fd")) > before  # noqa: PTH208

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.fixture
def shared_core() -> Iterator[None]:
    """Keep this thread on one core, beside a program that never rests."""
    allowed = os.sched_getaffinity(0)
    core = {min(allowed)}
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(burner.pid, core)
        os.sched_setaffinity(0, core)
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        burner.kill()
        burner.wait()


@linux_only
@pytest.mark.usefixtures("shared_core")
def test_the_delay_is_the_time_that_a_busy_thread_had_no_processor() -> None:
    """A thread that never sleeps is either on the core or waits for it, at any load."""
    if why_unknown():
        pytest.skip(why_unknown())
    turns_s = 0.02
    with ThreadDelays() as delays:
        for _ in range(5):
            delays.start()
            began_s, ran_s = time.perf_counter(), time.thread_time()
            while time.thread_time() - ran_s < turns_s:  # until the other program had its turn too
                pass
            wall_s, cpu_s = time.perf_counter() - began_s, time.thread_time() - ran_s
            lost_s = delays.stop()

            assert lost_s is not None
            assert lost_s == pytest.approx(wall_s - cpu_s, abs=0.05 * wall_s)
            assert lost_s > 0
