"""The counters of all GPUs that hold a model, as one reading each.

Sums are over all of them, and a sum with a part missing is no sum: it is None, with the reason.
No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any, Protocol

from inference.process.nvml_counters import GPU_READINGS, Reading


class Counters(Protocol):
    """The part of ``GpuCounters`` that a group needs."""

    @property
    def reasons(self) -> dict[str, str]:
        """Why a reading is missing, by its name."""
        ...

    @property
    def is_found(self) -> bool:
        """True when there is a GPU to ask."""
        ...

    @property
    def is_memory_shared(self) -> bool:
        """True when it has no memory of its own."""
        ...

    def read(self) -> dict[str, Reading]:
        """Return the readings that the GPU gave, by name."""
        ...

    def leave_alone(self, reason: str) -> None:
        """Stop reading a GPU that is there."""
        ...

    def close(self) -> None:
        """Disconnect from the driver."""
        ...


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _any_of(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what throttles any of them, each once."""
    return tuple(dict.fromkeys(reason for reasons in values for reason in reasons))


# How the readings of several GPUs become one. A step waits for every one of them, so the lowest
# clock and the highest temperature are what explains it.
MERGED: Mapping[str, Callable[[Any], Reading]] = {
    "gpu_busy_ratio": _mean,
    "memory_controller_busy_ratio": _mean,
    "memory_used_bytes": sum,
    "memory_total_bytes": sum,
    "power_w": fsum,
    "energy_j": fsum,
    "sm_clock_hz": min,
    "memory_clock_hz": min,
    "temperature_c": max,
    "throttle_reasons": _any_of,
    "pcie_tx_bytes_per_s": fsum,
    "pcie_rx_bytes_per_s": fsum,
    "other_programs": max,
}


class GpuGroup:
    """Several GPUs' counters, read one after the other as if they were one GPU's."""

    def __init__(self, members: Sequence[Counters]) -> None:
        self._members = members
        self._names = [f"GPU {place}" for place in range(1, len(members) + 1)]

    @property
    def is_found(self) -> bool:
        """True when there is a GPU to ask."""
        return any(member.is_found for member in self._members)

    @property
    def is_memory_shared(self) -> bool:
        """True when they have no memory of their own and use the machine's."""
        return all(member.is_memory_shared for member in self._members)

    @property
    def reasons(self) -> dict[str, str]:
        """Why a reading is missing, by its name; with several GPUs, of which."""
        if len(self._members) == 1:
            return self._members[0].reasons
        told: dict[str, str] = {}
        for reading in GPU_READINGS:
            lacking = {
                name: member.reasons[reading]
                for name, member in zip(self._names, self._members, strict=True)
                if reading in member.reasons
            }
            if len(lacking) == len(self._members) and len(set(lacking.values())) == 1:
                told[reading] = next(iter(lacking.values()))
            elif lacking:
                told[reading] = "; ".join(f"{name}: {why}" for name, why in lacking.items())
        return told

    def read(self) -> dict[str, Reading]:
        """Return each reading that every GPU gave, by name."""
        if len(self._members) == 1:
            return self._members[0].read()
        parts = [member.read() for member in self._members]
        return {
            name: merge([part[name] for part in parts])
            for name, merge in MERGED.items()
            if all(part.get(name) is not None for part in parts)
        }

    def leave_alone(self, reason: str) -> None:
        """Stop reading GPUs that are there, for this reason."""
        for member in self._members:
            member.leave_alone(reason)

    def close(self) -> None:
        """Disconnect from the driver."""
        for member in self._members:
            member.close()
