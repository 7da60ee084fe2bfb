"""How busy the machine is, sampled on its own thread: psutil always, NVML where there is a GPU.

A reading that fails is None in the sample, with its reason in ``Telemetry.unavailable``. Nothing
here raises into the engine or waits for the device. No torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import fields
from threading import Event, Thread
from typing import Any, Protocol

import psutil

from inference.models.memory_limit import MemoryLimit
from inference.process.nvml import GpuCounters
from inference.process.nvml_counters import Reading
from inference.process.nvml_group import GpuGroup
from inference.records.telemetry import TelemetrySample, Unavailable

MEMORY_READINGS = ("memory_used_bytes", "memory_total_bytes")
READINGS = tuple(field.name for field in fields(TelemetrySample) if field.name != "at_s")
LONGEST_STOP_S = 2.0
logger = logging.getLogger(__name__)


def machine_busy_ratio() -> float:
    """Return how busy all processors were since the previous call; the first means nothing."""
    return psutil.cpu_percent() / 100


class HostTime(Protocol):
    """The part of a StepClock that may be read from any thread."""

    def now_s(self) -> float:
        """Return host monotonic time."""
        ...


class MachineReadings:
    """CPU and memory of the machine and of this process; for the thread that made it only.

    Attributes:
        reasons: Why a reading is missing, by its name; empty while all is well.
    """

    def __init__(self, limit: MemoryLimit) -> None:
        self.reasons: dict[str, str] = {}
        self._process = psutil.Process()
        self._cores = psutil.cpu_count() or 1
        self._limit = limit
        self.busy()  # psutil counts since its previous call, so the first answer means nothing

    def busy(self) -> dict[str, Reading]:
        """Return the CPU's and this process's readings since the previous call, by name."""
        return {
            **self._ask(("cpu_busy_ratio",), self._cpu),
            **self._ask(("process_cpu_ratio",), self._process_cpu),
            **self._ask(("process_memory_bytes",), self._resident),
        }

    def memory(self) -> dict[str, Reading]:
        """Return the machine's memory, or its container's where that has less, by name."""
        return self._ask(MEMORY_READINGS, self._memory)

    def _cpu(self) -> tuple[Reading, ...]:
        return (psutil.cpu_percent() / 100,)

    def _process_cpu(self) -> tuple[Reading, ...]:
        return (self._process.cpu_percent() / 100 / self._cores,)

    def _resident(self) -> tuple[Reading, ...]:
        return (self._process.memory_info().rss,)

    def _memory(self) -> tuple[Reading, ...]:
        machine = psutil.virtual_memory()
        limit = self._limit.total_bytes
        if limit is None or limit >= machine.total:
            return machine.total - machine.available, machine.total
        return self._limit.used_bytes(), limit

    def _ask(
        self, names: tuple[str, ...], read: Callable[[], tuple[Reading, ...]]
    ) -> dict[str, Reading]:
        """Return readings by name; note the reason where the system does not give them."""
        try:
            values = dict(zip(names, read(), strict=True))
        except (psutil.Error, OSError, ValueError, RuntimeError) as error:
            logger.debug("%s: %s", names, error)
            values = dict.fromkeys(names)
        for name, value in values.items():
            if value is None:
                self.reasons[name] = "the operating system does not report it"
            else:
                self.reasons.pop(name, None)
        return values


class Sources:
    """All readings of one sample; made and used on one thread.

    Without a GPU to watch, memory is the machine's. The driver is asked once all the same, so that
    the readings that are missing have their true reason.
    """

    def __init__(self, gpus: Sequence[int | str], limit: MemoryLimit) -> None:
        self._machine = MachineReadings(limit)
        self._is_gpu_watched = bool(gpus)
        self._gpu = GpuGroup([GpuCounters(gpu) for gpu in gpus or (0,)])
        if not gpus:
            self._gpu.leave_alone("this run does not use the GPU")

    def read(self) -> dict[str, Reading]:
        """Return all readings of this moment, by name."""
        values = self._machine.busy() | self._gpu.read()
        if self._is_memory_the_machines:
            values |= self._machine.memory()
        return values

    def reasons(self) -> dict[str, str]:
        """Return why readings are missing, by name."""
        reasons = dict(self._gpu.reasons)
        if self._is_memory_the_machines:
            for name in MEMORY_READINGS:
                reasons.pop(name, None)
        return reasons | self._machine.reasons

    def close(self) -> None:
        """Leave the driver."""
        self._gpu.close()

    @property
    def _is_memory_the_machines(self) -> bool:
        """True when the device's memory is that of the machine."""
        return not self._is_gpu_watched or self._gpu.is_memory_shared


class Telemetry:
    """Samples the machine a few times a second until it is stopped.

    ``on_sample`` is called on the sampling thread and must return at once.
    """

    def __init__(
        self,
        clock: HostTime,
        on_sample: Callable[[TelemetrySample], None],
        *,
        rate_hz: float = 10.0,
        gpus: Sequence[int | str] = (),
    ) -> None:
        """Prepare, without reading anything yet.

        Args:
            clock: The clock that also times the run's steps.
            on_sample: Takes each sample.
            rate_hz: Samples a second, fewer when the driver is slower.
            gpus: UUID or NVML index of each GPU that holds the model; none for the CPU.
        """
        self._clock = clock
        self._on_sample = on_sample
        self._interval_s = 1 / rate_hz
        self._gpus = tuple(gpus)
        self._zero_s = 0.0
        self._reasons: dict[str, str] = {}
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self, zero_s: float) -> None:
        """Begin sampling; ``zero_s`` is the clock's time that ``at_s`` counts from.

        The first sample comes one interval later, since CPU shares need a time to be shares of.
        """
        self._zero_s = zero_s
        self._stop.clear()
        self._thread = Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End sampling; no sample comes after, unless a driver hangs in a call."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LONGEST_STOP_S)
            self._thread = None

    def unavailable(self) -> tuple[Unavailable, ...]:
        """Return the readings that the latest sample lacked for a reason, in the record's order."""
        reasons = self._reasons
        return tuple(
            Unavailable(reading=name, reason=reasons[name]) for name in READINGS if name in reasons
        )

    def _run(self) -> None:
        """Sample until stopped; an error ends the sampling and nothing else."""
        try:
            sources = Sources(self._gpus, MemoryLimit())
            try:
                self._sample_until_stopped(sources)
            finally:
                sources.close()
        except Exception:
            logger.exception("sampling the machine ended early")
            self._reasons = dict.fromkeys(READINGS, "sampling the machine failed; see the log")

    def _sample_until_stopped(self, sources: Sources) -> None:
        """Report one sample per interval, counted from the start of the previous one."""
        pause_s = self._interval_s
        while not self._stop.wait(pause_s):
            begun_s = self._clock.now_s()
            sample = sample_of(begun_s - self._zero_s, sources.read())
            self._reasons = sources.reasons()
            self._on_sample(sample)
            pause_s = max(0.0, self._interval_s - (self._clock.now_s() - begun_s))


def sample_of(at_s: float, values: dict[str, Reading]) -> TelemetrySample:
    """Return the record of readings given by their field names; those not given are None."""
    readings: dict[str, Any] = values
    return TelemetrySample(at_s=at_s, **readings)
