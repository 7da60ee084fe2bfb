"""How busy the machine was, reading by reading."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySample:
    """How busy the machine was at one moment; each reading is None where it is not available.

    Of a model that is spread over several GPUs, the readings are of all that hold it: memory,
    power, energy and PCIe as sums, busy ratios as means, the lowest clocks, the highest
    temperature, and what throttles any of them.

    Attributes:
        at_s: Host monotonic time, on the run's zero.
        gpu_busy_ratio: NVML: share of the last 1/6 to 1 s in which any kernel ran.
        memory_used_bytes: Device memory in use, all programs; on a CPU run, and on a GPU without
            memory of its own, the machine's (its container's, where that has a limit).
        power_w: NVML: of this moment where the driver knows it; else a mean over the last second on
            most GPUs since Ampere. None for a part of a GPU (MIG), as all that is the whole GPU's.
        cpu_busy_ratio: Share of all cores' time, whole machine, since the sample before.
        process_cpu_ratio: The engine's share of all cores' time since the sample before.
        process_memory_bytes: Resident memory of the engine process.
        memory_controller_busy_ratio: NVML: share of the same time in which device memory was read
            or written at all; no measure of bandwidth.
        energy_j: NVML: counter of the GPU's energy; only differences over 0.1 s and more mean much.
        temperature_c: Of the GPU, in degrees Celsius.
        throttle_reasons: What holds the GPU's clocks down, in words; empty when nothing does.
        pcie_tx_bytes_per_s: Sent by the GPU, over 20 ms; read once in a while, None in between.
        pcie_rx_bytes_per_s: Received by the GPU, likewise.
        other_programs: Programs beside this one that compute on the GPU; read likewise.
    """

    at_s: float
    gpu_busy_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    cpu_busy_ratio: float | None = None
    process_cpu_ratio: float | None = None
    process_memory_bytes: int | None = None
    memory_controller_busy_ratio: float | None = None
    energy_j: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    pcie_tx_bytes_per_s: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    other_programs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A reading this machine does not give, and why.

    Attributes:
        reading: A field of TelemetrySample, or of StepEvent.
        reason: In a sentence.
    """

    reading: str
    reason: str
