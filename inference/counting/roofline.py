"""Points of a roofline: what a step had to do, how long it took, and which limit it was under.

Counted work and measured step times come in, points go out; nothing is clipped. A point above a
measured roof is impossible, so it carries words that say so. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.records.costs import Ceilings, StepCost
from inference.records.errors import InputError
from inference.records.rooflines import Bound, Part, RooflinePoint, roof_tag

# Chosen: below a quarter of the roof above it, a step spends more than three quarters of its time
# neither moving nor computing at the device's rate: launches, host work or small kernels.
OVERHEAD_RATIO = 0.25
# Chosen: on a shared machine, repeats of the same step differ by about this much. A point that lies
# no farther above a roof raises no message.
NOISE_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PartWork:
    """FLOPs and bytes of a whole step, or of its linear operations or its attention."""

    part: Part
    flops: int
    bytes_moved: int


def work_of(cost: StepCost, part: Part) -> PartWork:
    """Return the work of the whole step, of its linear operations, or of its attention.

    Linear operations read the weights; attention reads the K/V and the step's new rows are stored.
    """
    if part is Part.LINEAR:
        return PartWork(part=part, flops=cost.linear_flops, bytes_moved=cost.weight_bytes)
    if part is Part.ATTENTION:
        moved = cost.kv_read_bytes + cost.kv_write_bytes
        return PartWork(part=part, flops=cost.attention_flops, bytes_moved=moved)
    return PartWork(part=part, flops=cost.flops, bytes_moved=cost.bytes_moved)


def attainable_flops_per_s(ceilings: Ceilings, flops_per_byte: float) -> float:
    """Return the height of the roof at an intensity.

    Source:
        Williams, Waterman and Patterson 2009, Roofline, CACM 52(4).
    """
    return min(ceilings.flops_per_s, flops_per_byte * ceilings.bytes_per_s)


def roofline_point(
    work: PartWork, step_time_s: float, ceilings: Ceilings, datasheet: Ceilings | None = None
) -> RooflinePoint | None:
    """Return the point of a step or part; None where it moved nothing or no time was measured.

    Args:
        work: Counted.
        step_time_s: Measured time of the same operations.
        ceilings: The roofs the point is drawn under.
        datasheet: The vendor's rates, for MFU and MBU.

    Raises:
        InputError: If a roof is not above zero.
    """
    check_roofs(ceilings)
    if work.bytes_moved <= 0 or step_time_s <= 0:
        return None
    lower_bound_s = lower_bound_seconds(work, ceilings)
    ratio = lower_bound_s / step_time_s
    return RooflinePoint(
        part=work.part,
        flops=work.flops,
        bytes_moved=work.bytes_moved,
        step_time_s=step_time_s,
        lower_bound_s=lower_bound_s,
        roof_ratio=ratio,
        bound=_measured_bound(work, ratio, ceilings),
        alarm=_alarm(ratio, ceilings),
        mfu_ratio=work.flops / (step_time_s * datasheet.flops_per_s) if datasheet else None,
        mbu_ratio=work.bytes_moved / (step_time_s * datasheet.bytes_per_s) if datasheet else None,
    )


def lower_bound_seconds(work: PartWork | StepCost, ceilings: Ceilings) -> float:
    """Return the least time of this work: the longer of computing and moving, wholly overlapped."""
    return max(work.flops / ceilings.flops_per_s, work.bytes_moved / ceilings.bytes_per_s)


def bound_of(work: PartWork | StepCost, ceilings: Ceilings) -> Bound:
    """Return which roof is above this work: memory left of the ridge, compute from it on."""
    is_right = work.flops >= work.bytes_moved * ceilings.ridge_flops_per_byte
    return Bound.COMPUTE if is_right else Bound.MEMORY


def check_roofs(ceilings: Ceilings) -> None:
    """Raise InputError when a roof is not above zero."""
    if not (ceilings.flops_per_s > 0 and ceilings.bytes_per_s > 0):
        msg = (
            f"roofs of {ceilings.flops_per_s} FLOP/s and {ceilings.bytes_per_s} bytes/s: "
            "both must be above zero"
        )
        raise InputError(msg)


def _measured_bound(work: PartWork, ratio: float, ceilings: Ceilings) -> Bound:
    return Bound.OVERHEAD if ratio < OVERHEAD_RATIO else bound_of(work, ceilings)


def _alarm(ratio: float, ceilings: Ceilings) -> str:
    """Return what a point above the roofs means, to be put behind the step's name; empty below."""
    if ratio <= 1 + NOISE_RATIO:
        return ""
    return (
        f"lies {ratio - 1:.0%} above the {roof_tag(ceilings)} roof; the roof may be out of date"
    ).replace("%", " %")
