"""A GPU's own counters through NVML; a counter that fails becomes a reason in plain words.

Used by telemetry only. ``pynvml`` (the distribution nvidia-ml-py) is imported when a GPU is first
asked for, so a machine without it, or without a driver, loses these readings and nothing else. One
thread at a time. No torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

Reading = float | int | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """One question to the driver.

    Attributes:
        readings: The TelemetrySample fields it answers.
        read: Called with pynvml and a device handle; returns one value per reading.
        every: Asked in one of this many samples.
        missing: Why a reading that was answered may have no value.
    """

    readings: tuple[str, ...]
    read: Callable[[ModuleType, Any], tuple[Reading, ...]]
    every: int = 1
    missing: str = "the NVIDIA driver gives no valid value"


def _busy(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    busy = nvml.nvmlDeviceGetUtilizationRates(device)  # per cent
    return _share(busy.gpu), _share(busy.memory)


def _share(percent: int) -> float | None:
    """Return the ratio; None for the out-of-range values that stand for "unknown"."""
    return percent / 100 if 0 <= percent <= 100 else None  # noqa: PLR2004  # a whole in per cent


def _memory(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    memory = nvml.nvmlDeviceGetMemoryInfo(device)
    if memory.total == 0:  # a GPU that has no memory of its own
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return int(memory.used), int(memory.total)


def _clocks(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    return tuple(
        nvml.nvmlDeviceGetClockInfo(device, clock) * 1e6  # NVML reports MHz
        for clock in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)
    )


def _pcie(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    return tuple(
        nvml.nvmlDeviceGetPcieThroughput(device, way) * 1e3  # NVML reports KB/s
        for way in (nvml.NVML_PCIE_UTIL_TX_BYTES, nvml.NVML_PCIE_UTIL_RX_BYTES)
    )


def _others(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    programs = {one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(device)}
    # In a container the driver may count programs by other numbers, or hide them all.
    return (len(programs) - 1 if os.getpid() in programs else None,)


def _throttle(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(device)
    except nvml.NVMLError_FunctionNotFound:  # drivers before 535 know the older name
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    return (throttle_words(bits),)


# An idle GPU (bit 0x1) lowers its clocks too, but nothing throttles it.
# Source: nvml.h of NVML 13, group nvmlClocksEventReasons, read in pynvml 13.615 on 2026-11-29.
IDLE_BIT = 0x1
THROTTLE_BITS = {
    0x2: "clocks set by the user",
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x10: "kept in step with other GPUs",
    0x20: "temperature, by the driver",
    0x40: "temperature, by the hardware",
    0x80: "power brake from outside",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability limit",
}


def throttle_words(bits: int) -> tuple[str, ...]:
    """Return what throttles the clocks, in words; empty when nothing does."""
    rest = bits & ~IDLE_BIT & ~sum(THROTTLE_BITS)
    reasons = tuple(words for bit, words in THROTTLE_BITS.items() if bits & bit)
    return (*reasons, f"unknown reason {rest:#x}") if rest else reasons


# PCIe is read once a second at 10 Hz, since each of its two readings blocks the caller for 20 ms.
# Source: NVML API reference, nvmlDeviceGetPcieThroughput.
COUNTERS = (
    Counter(readings=("gpu_busy_ratio", "memory_controller_busy_ratio"), read=_busy),
    Counter(readings=("memory_used_bytes", "memory_total_bytes"), read=_memory),
    Counter(
        readings=("power_w",),
        read=lambda nvml, device: (nvml.nvmlDeviceGetPowerUsage(device) / 1e3,),  # milliwatts
    ),
    Counter(
        readings=("energy_j",),
        read=lambda nvml, device: (
            nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1e3,  # millijoules
        ),
    ),
    Counter(readings=("sm_clock_hz", "memory_clock_hz"), read=_clocks),
    Counter(
        readings=("temperature_c",),
        read=lambda nvml, device: (
            float(nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
        ),
    ),
    Counter(readings=("throttle_reasons",), read=_throttle),
    Counter(readings=("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"), read=_pcie, every=10),
    Counter(
        readings=("other_programs",),
        read=_others,
        every=10,
        missing="the NVIDIA driver does not list this program, as in a container",
    ),
)
GPU_READINGS = tuple(reading for counter in COUNTERS for reading in counter.readings)

NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13
LIBRARY_NOT_FOUND = 12
# Source: nvml.h of NVML 13, nvmlReturn_t, read in pynvml 13.615 on 2026-11-29.
REASONS = {
    1: "the NVIDIA driver closed the connection",
    NOT_SUPPORTED: "not supported by this GPU",
    4: "no permission to read it; ask the machine's administrator, or start the container with it",
    6: "the NVIDIA driver knows no such GPU",
    8: "the GPU's power cable is not connected",
    9: "the NVIDIA driver is not loaded",
    10: "the NVIDIA driver did not answer in time",
    LIBRARY_NOT_FOUND: "no NVIDIA driver on this machine",
    FUNCTION_NOT_FOUND: "this NVIDIA driver is too old to report it",
    15: "the GPU is lost: it does not answer the driver",
    16: "the GPU must be reset before it answers again",
    17: "the operating system or the container blocks it",
    18: "the NVIDIA driver and its library differ in version; restart the machine",
    28: "the NVIDIA driver knows no such GPU",
}
FINAL_FOR_ONE = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND})
FINAL_FOR_ALL = frozenset({1, 15, 16})


def reason_for(code: int, *, is_mig: bool = False) -> str:
    """Return why NVML gave no answer, in plain words."""
    if code == NOT_SUPPORTED and is_mig:
        return "not reported for a GPU that is split into instances (MIG)"
    return REASONS.get(code, f"the NVIDIA driver answered with error {code}")


class GpuCounters:
    """One GPU's counters, asked until they fail for good.

    Attributes:
        reasons: Why a reading is missing, by its name; empty while all is well.
        is_found: True when there is a GPU to ask.
        is_memory_shared: True when the GPU has no memory of its own and uses the machine's.
    """

    def __init__(self, gpu: int | str) -> None:
        """Connect to the driver.

        Args:
            gpu: The GPU's UUID, with or without its prefix (CUDA's own number is another than
                NVML's when ``CUDA_VISIBLE_DEVICES`` is set), or its NVML index.
        """
        self.reasons: dict[str, str] = {}
        self.is_found = False
        self.is_memory_shared = False
        self._is_connected = False
        self._is_mig = False
        self._asked: tuple[Counter, ...] = ()
        self._samples = 0
        try:
            self._nvml = import_module("pynvml")
        except ImportError:
            self._give_up("the package nvidia-ml-py is not installed")
            return
        try:
            self._nvml.nvmlInit()
            self._is_connected = True
            self._device = self._find(gpu)
        except self._nvml.NVMLError as error:
            self._give_up(reason_for(error.value))
            return
        self.is_found = True
        self._is_mig = self._is_split()
        self._asked = COUNTERS

    def read(self) -> dict[str, Reading]:
        """Return the readings that the GPU gave, by name."""
        values: dict[str, Reading] = {}
        for counter in self._asked:
            if not self._asked:
                break  # the previous counter gave up on the GPU
            if self._samples % counter.every == 0:
                values.update(self._ask(counter))
        self._samples += 1
        return values

    def leave_alone(self, reason: str) -> None:
        """Stop reading a GPU that is there, for this reason; one that is not keeps its own."""
        if self.is_found:
            self._give_up(reason)

    def close(self) -> None:
        """Disconnect from the driver."""
        if not self._is_connected:
            return
        self._asked = ()
        self._is_connected = False
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return  # the driver is gone, and the connection with it

    def _ask(self, counter: Counter) -> dict[str, Reading]:
        """Return one counter's readings; note the reason for those that are missing."""
        try:
            values = dict(
                zip(counter.readings, counter.read(self._nvml, self._device), strict=True)
            )
        except self._nvml.NVMLError as error:
            self._note(counter, error.value)
            return {}
        for reading, value in values.items():
            if value is None:
                self.reasons[reading] = counter.missing
            else:
                self.reasons.pop(reading, None)
        return values

    def _note(self, counter: Counter, code: int) -> None:
        """Keep why a counter failed, and stop reading it where that will not change."""
        if code in FINAL_FOR_ALL:
            self._give_up(reason_for(code))
            return
        for reading in counter.readings:
            self.reasons[reading] = reason_for(code, is_mig=self._is_mig)
        if code in FINAL_FOR_ONE:
            self._asked = tuple(kept for kept in self._asked if kept is not counter)
        if code == NOT_SUPPORTED and "memory_used_bytes" in counter.readings:
            self.is_memory_shared = not self._is_mig

    def _give_up(self, reason: str) -> None:
        """Stop reading anything: every reading is missing for this reason."""
        self._asked = ()
        self.reasons = dict.fromkeys(GPU_READINGS, reason)

    def _find(self, gpu: int | str) -> Any:  # noqa: ANN401  # an opaque handle
        """Return NVML's handle of the GPU."""
        nvml = self._nvml
        if isinstance(gpu, int):
            return nvml.nvmlDeviceGetHandleByIndex(gpu)
        if gpu.startswith(("GPU-", "MIG-")):
            return nvml.nvmlDeviceGetHandleByUUID(gpu)
        try:
            return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{gpu}")
        except nvml.NVMLError_NotFound:
            return nvml.nvmlDeviceGetHandleByUUID(f"MIG-{gpu}")

    def _is_split(self) -> bool:
        """Return whether the handle is a MIG instance, or a GPU that is split into some."""
        nvml = self._nvml
        try:
            if nvml.nvmlDeviceIsMigDeviceHandle(self._device).value:
                return True
            return nvml.nvmlDeviceGetMigMode(self._device)[0] == nvml.NVML_DEVICE_MIG_ENABLE
        except nvml.NVMLError:
            return False  # the error of a GPU that cannot be split
