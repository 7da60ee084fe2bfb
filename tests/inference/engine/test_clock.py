"""Step times on scripted clocks and events: nothing here reads a real clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from inference.engine.clock import CudaClock, HostClock, StepClock, clock_for
from tests.doubles import ScriptedClock


def scripted_time(*times_s: float) -> Callable[[], float]:
    """Return a clock reading that gives the times in turn."""
    times: Iterator[float] = iter(times_s)
    return lambda: next(times)


class ScriptedEvent:
    """A device event that writes what is done to it into a shared log."""

    def __init__(self, name: str, log: list[str], elapsed_ms: float = 0.0) -> None:
        self.name = name
        self.log = log
        self.elapsed_ms = elapsed_ms

    def record(self) -> None:
        """Note a mark."""
        self.log.append(f"record {self.name}")

    def synchronize(self) -> None:
        """Note a wait."""
        self.log.append(f"wait for {self.name}")

    def elapsed_time(self, end_event: ScriptedEvent) -> float:
        """Note a reading and return the scripted one."""
        self.log.append(f"elapsed {self.name} to {end_event.name}")
        return self.elapsed_ms


def cuda_clock(log: list[str], elapsed_ms: float, *times_s: float) -> CudaClock:
    """Return a clock on two scripted events and scripted host times."""
    start, end = ScriptedEvent("start", log, elapsed_ms), ScriptedEvent("end", log)
    return CudaClock(start, end, scripted_time(*times_s))


def test_a_host_step_time_runs_from_its_start_to_the_devices_end() -> None:
    clock = HostClock(read=scripted_time(10.0, 10.5))

    clock.start_timing()
    step_time_s = clock.end_timing()

    assert step_time_s == 0.5


def test_a_step_on_an_apple_gpu_ends_when_the_gpu_has_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[str] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waits.append("waited"))
    clock = clock_for(torch.device("mps"))

    clock.start_timing()
    assert waits == ["waited"]
    clock.end_timing()

    assert waits == ["waited"] * 2


def test_a_host_clock_tells_when_the_work_was_handed_to_a_device() -> None:
    clock = HostClock(lambda: None, scripted_time(10.0, 10.25, 10.5))

    clock.start_timing()

    assert clock.launched() == 0.25
    assert clock.end_timing() == 0.5


def test_nothing_is_launched_on_a_cpu() -> None:
    clock = HostClock(read=scripted_time(10.0, 10.5))

    clock.start_timing()

    assert clock.launched() is None
    assert clock.end_timing() == 0.5


def test_a_host_clock_waits_for_the_device_before_and_after_the_step_time() -> None:
    log: list[str] = []
    times = scripted_time(1.0, 4.0)

    def read() -> float:
        log.append("read")
        return times()

    clock = HostClock(lambda: log.append("synchronize"), read)
    clock.start_timing()
    clock.end_timing()

    assert log == ["synchronize", "read", "synchronize", "read"]


def test_a_host_step_time_is_never_negative() -> None:
    clock = HostClock(lambda: None, scripted_time(10.0, 9.0, 8.0))

    clock.start_timing()

    assert clock.launched() == 0.0
    assert clock.end_timing() == 0.0


def test_a_cuda_step_time_is_the_events_time_in_seconds() -> None:
    clock = cuda_clock([], 12.5, 1.0, 1.25)

    clock.start_timing()
    host_s = clock.launched()
    step_time_s = clock.end_timing()

    assert (host_s, step_time_s) == (0.25, 0.0125)


def test_a_cuda_step_time_is_read_only_after_its_end_was_waited_for() -> None:
    log: list[str] = []
    clock = cuda_clock(log, 1.0, 0.0, 0.0)

    clock.start_timing()
    clock.end_timing()

    assert log == ["record start", "record end", "wait for end", "elapsed start to end"]


def test_a_cuda_step_time_is_never_negative() -> None:
    clock = cuda_clock([], -0.001, 5.0, 4.0)

    clock.start_timing()

    assert clock.launched() == 0.0
    assert clock.end_timing() == 0.0


@pytest.mark.parametrize(
    "clock", [HostClock(), cuda_clock([], 1.0, 0.0, 0.0)], ids=["host", "cuda_events"]
)
def test_a_step_time_that_was_not_started_cannot_be_ended(clock: StepClock) -> None:
    with pytest.raises(RuntimeError, match="without start_timing"):
        clock.end_timing()


def test_a_step_time_cannot_be_ended_twice() -> None:
    clock = cuda_clock([], 1.0, 0.0, 0.0)
    clock.start_timing()
    clock.end_timing()

    with pytest.raises(RuntimeError, match="without start_timing"):
        clock.end_timing()


def test_host_time_does_not_run_backwards() -> None:
    clock = clock_for(torch.device("cpu"))

    assert clock.now_s() <= clock.now_s()


@pytest.mark.parametrize(("kind", "name"), [("cpu", "host"), ("mps", "host")])
def test_devices_without_events_are_timed_by_the_host(kind: str, name: str) -> None:
    clock = clock_for(torch.device(kind))

    assert isinstance(clock, HostClock)
    assert clock.name == name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_step_time_covers_the_devices_work() -> None:
    clock = clock_for(torch.device("cuda", torch.cuda.device_count() - 1))
    square = torch.ones(2048, 2048, device=f"cuda:{torch.cuda.device_count() - 1}")

    clock.start_timing()
    _ = square @ square
    step_time_s = clock.end_timing()

    assert clock.name == "cuda_events"
    assert step_time_s > 0


def test_a_scripted_step_time_grows_by_what_happens_inside_it_only() -> None:
    clock = ScriptedClock([1.0, 2.0])

    clock.start_timing()
    clock.advance(0.5)
    first_s = clock.end_timing()
    clock.advance(100.0)
    clock.start_timing()
    second_s = clock.end_timing()

    assert (first_s, second_s) == (1.5, 2.0)
    assert clock.step_times_s == [1.5, 2.0]
    assert clock.now_s() == 103.5
