"""The questions that are put to an NVIDIA driver, with their answers in SI units.

Each is called with pynvml and an opaque handle by ``nvml.py``, which knows when not to ask. No
torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
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
        is_whole_gpus: The answer is of the whole GPU even where a part of it (MIG) is asked about.
        is_handles: It is of whatever the handle stands for, a part or the whole GPU.
    """

    readings: tuple[str, ...]
    read: Callable[[ModuleType, Any], tuple[Reading, ...]]
    every: int = 1
    missing: str = "the NVIDIA driver gives no valid value"
    is_whole_gpus: bool = False
    is_handles: bool = False


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


def _power(nvml: ModuleType, device: Any) -> tuple[Reading, ...]:  # noqa: ANN401  # opaque handle
    milliwatts = _power_now(nvml, device)
    return ((nvml.nvmlDeviceGetPowerUsage(device) if milliwatts is None else milliwatts) / 1e3,)


def _power_now(nvml: ModuleType, device: Any) -> int | None:  # noqa: ANN401  # opaque handle
    """Return the power of this moment in milliwatts; None where only the usual reading exists.

    The usual one is a mean over the last second on Ampere (except GA100) and later.

    Source:
        NVML API reference, nvmlDeviceGetPowerUsage and NVML_FI_DEV_POWER_INSTANT.
    """
    try:
        [field] = nvml.nvmlDeviceGetFieldValues(device, [nvml.NVML_FI_DEV_POWER_INSTANT])
    except (nvml.NVMLError, AttributeError):  # AttributeError: an old nvidia-ml-py
        return None  # the usual reading says what is wrong
    is_answered = field.nvmlReturn == nvml.NVML_SUCCESS
    return int(field.value.uiVal) if is_answered else None


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
    except (nvml.NVMLError_FunctionNotFound, AttributeError):
        # Drivers before 535 and the nvidia-ml-py of their time know the older name.
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
    Counter(
        readings=("memory_used_bytes", "memory_total_bytes"),
        read=_memory,
        is_handles=True,
    ),
    Counter(readings=("power_w",), read=_power, is_whole_gpus=True),
    Counter(
        readings=("energy_j",),
        read=lambda nvml, device: (
            nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1e3,  # millijoules
        ),
        is_whole_gpus=True,
    ),
    Counter(readings=("sm_clock_hz", "memory_clock_hz"), read=_clocks),
    Counter(
        readings=("temperature_c",),
        read=lambda nvml, device: (
            float(nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
        ),
    ),
    Counter(readings=("throttle_reasons",), read=_throttle),
    Counter(
        readings=("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"),
        read=_pcie,
        every=10,
        is_whole_gpus=True,
    ),
    Counter(
        readings=("other_programs",),
        read=_others,
        every=10,
        missing="the NVIDIA driver does not list this program, as in a container",
        is_handles=True,
    ),
)
GPU_READINGS = tuple(reading for counter in COUNTERS for reading in counter.readings)
