"""Clocks: the only file that reads a clock, records an event or synchronises a device.

A step time runs from ``start_timing`` to the moment at which the device has finished what was given
to it before ``end_timing``. Drawing, pausing and pacing happen between step times and are in none.
``now_s`` is host monotonic time, the same for every clock of a process, so steps and telemetry
share one zero; it may be read from any thread. Step times belong to the thread that runs the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, Self

import torch


class StepClock(Protocol):
    """What the engine needs of a clock.

    Attributes:
        name: How steps are timed, as written in ``RunInfo.clock``: ``host`` or
            ``cuda_events``.
    """

    name: str

    def now_s(self) -> float:
        """Return host monotonic time; only differences mean something."""
        ...

    def start_timing(self) -> None:
        """Begin timing a step."""
        ...

    def launched(self) -> float | None:
        """Say that all the step's work is launched; return the host's time since its start.

        Much shorter than the step time: the host ran ahead of the device. About as long: the device
        waited for the host, or the host for the device on the way. None where there is no such
        difference, since an operation has finished when its call returns.
        """
        ...

    def end_timing(self) -> float:
        """Wait until the device has finished; return the step time in seconds, never negative."""
        ...


class DeviceEvent(Protocol):
    """A mark in a device's stream of work, as ``torch.cuda.Event`` with timing on."""

    def record(self) -> None:
        """Put the mark behind the work launched so far."""
        ...

    def synchronize(self) -> None:
        """Wait until the device has passed the mark."""
        ...

    def elapsed_time(self, end_event: Self) -> float:
        """Return the milliseconds from this mark to ``end_event``."""
        ...


def finish_nothing() -> None:
    """Return at once: on the CPU an operation has finished when its call returns."""


class HostClock:
    """Step times by host time, ended when ``synchronize`` returns.

    Attributes:
        name: ``host``.
    """

    def __init__(
        self,
        synchronize: Callable[[], None] = finish_nothing,
        read: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = "host"
        self._synchronize = synchronize
        self._read = read
        self._started_s: float | None = None

    def now_s(self) -> float:
        """Return host monotonic time."""
        return self._read()

    def start_timing(self) -> None:
        """Begin timing a step, once the device has finished what came before."""
        self._synchronize()
        self._started_s = self._read()

    def launched(self) -> float | None:
        """Return the host's time since the step's start; None where nothing runs on behind it."""
        started_s = started(self._started_s)
        if self._synchronize is finish_nothing:
            return None
        return max(0.0, self._read() - started_s)

    def end_timing(self) -> float:
        """Wait until the device has finished; return the step time in seconds."""
        started_s = started(self._started_s)
        self._started_s = None
        self._synchronize()
        return max(0.0, self._read() - started_s)


class CudaClock:
    """Step times by a pair of events in the device's own stream, so no host wait begins a step.

    Attributes:
        name: ``cuda_events``.
    """

    def __init__(
        self,
        start: DeviceEvent,
        end: DeviceEvent,
        read: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = "cuda_events"
        self._start = start
        self._end = end
        self._read = read
        self._started_s: float | None = None

    def now_s(self) -> float:
        """Return host monotonic time."""
        return self._read()

    def start_timing(self) -> None:
        """Begin timing a step behind whatever the device still has to do."""
        self._start.record()
        self._started_s = self._read()

    def launched(self) -> float | None:
        """Return the host's time since the step began."""
        return max(0.0, self._read() - started(self._started_s))

    def end_timing(self) -> float:
        """Wait until the device has passed the step's end; return the step time in seconds."""
        started(self._started_s)
        self._started_s = None
        self._end.record()
        self._end.synchronize()
        return max(0.0, self._start.elapsed_time(self._end) / 1e3)  # torch reports milliseconds


def started(started_s: float | None) -> float:
    """Return when the step began; raise RuntimeError when none did."""
    if started_s is None:
        msg = "end_timing() without start_timing(): no step time is running"
        raise RuntimeError(msg)
    return started_s


class CurrentStreamEvent:
    """A timing event on the current stream of one CUDA device, whichever device is current."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.event = torch.cuda.Event(enable_timing=True)

    def record(self) -> None:
        """Put the mark behind the work launched so far."""
        self.event.record(torch.cuda.current_stream(self._device))

    def synchronize(self) -> None:
        """Wait until the device has passed the mark."""
        self.event.synchronize()

    def elapsed_time(self, end_event: Self) -> float:
        """Return the milliseconds from this mark to ``end_event``."""
        return self.event.elapsed_time(end_event.event)


def clock_for(device: torch.device) -> StepClock:
    """Return the clock that times steps truly on ``device``."""
    if device.type == "cuda":
        return CudaClock(CurrentStreamEvent(device), CurrentStreamEvent(device))
    if device.type == "mps":
        return HostClock(torch.mps.synchronize)
    return HostClock()


def wall_clock_for(device: torch.device) -> HostClock:
    """Return a clock of host time that waits for ``device``, to judge a step clock by."""
    return HostClock(_waiting_for(device), time.monotonic)


def _waiting_for(device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    return torch.mps.synchronize if device.type == "mps" else finish_nothing


def sleep(seconds: float) -> bool:
    """Wait this long and return True: without a viewer nothing ends the wait early."""
    time.sleep(seconds)
    return True


class HostMarks:
    """Marks by host time: right where an operation has finished when its call returns."""

    def __init__(self, read: Callable[[], float] = time.perf_counter) -> None:
        self._read = read

    def mark(self) -> float:
        """Return this moment."""
        return self._read()

    def seconds(self, start: float, end: float) -> float:
        """Return the time between two marks."""
        return end - start


class DeviceMarks:
    """Marks in a device's stream; read them once the device has passed the last one."""

    def __init__(self, make: Callable[[], DeviceEvent]) -> None:
        self._make = make

    def mark(self) -> DeviceEvent:
        """Return a mark behind the work launched so far."""
        event = self._make()
        event.record()
        return event

    def seconds(self, start: DeviceEvent, end: DeviceEvent) -> float:
        """Return the device's time between two marks, waits for the host included."""
        return start.elapsed_time(end) / 1e3  # torch reports milliseconds


def marks_for(device: torch.device) -> HostMarks | DeviceMarks | None:
    """Return what times the parts of a step truly on ``device``; None where nothing does."""
    if device.type == "cuda":
        return DeviceMarks(lambda: CurrentStreamEvent(device))
    return HostMarks() if device.type == "cpu" else None
