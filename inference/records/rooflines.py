"""The records of roofs and rooflines: sweeps, data sheets, points, and what-if answers.

They keep the rules of the package: frozen, SI units in the suffix, ``None`` for what is not
known. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from inference.records.costs import Ceilings, Source, StepCost
from inference.records.model import Device
from inference.records.steps import Part

# Tokens fed in one step, for where it turns compute-bound: each twice the one before.
SWEPT_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ENTERED = "entered"  # the tag of roofs that a reader typed


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredCeilings(Ceilings):
    """Two rates that a reader typed: nothing measured them here and no vendor states them."""


def roof_tag(ceilings: Ceilings) -> str:
    """Return where roofs come from, in the word that is shown beside them."""
    return ENTERED if isinstance(ceilings, EnteredCeilings) else ceilings.source.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """The rates measured at one size of a sweep, each from one timing.

    Attributes:
        label: What was run and at which size.
        size: Bytes read, or the order of the square matrices.
        best: Highest rate of the repeats, in bytes/s or FLOP/s.
        median: Median rate.
        worst: Lowest rate.
        repeats: Timings behind them.
        is_disturbed: True when other programs disturbed every timing, each time it was measured
            again; otherwise the rates are of undisturbed ones.
    """

    label: str
    size: int
    best: float
    median: float
    worst: float
    repeats: int
    is_disturbed: bool = False

    @property
    def spread_ratio(self) -> float:
        """Best minus worst, as a share of the median."""
        return (self.best - self.worst) / self.median


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCeilings:
    """Both roofs of this device as measured here, and the sweeps they come from.

    Attributes:
        dtype: Of the matrix products; bandwidth does not depend on it.
        machine: Processor, cores used, memory.
        last_cache_bytes: Size of the largest cache; None when it could not be read.
        measured_at: UTC.
        notes: What to know of them, such as sizes for which there was no room.
    """

    device: Device
    dtype: str
    machine: str
    torch_version: str
    threads: int
    last_cache_bytes: int | None
    measured_at: datetime
    reads: tuple[SweepPoint, ...]
    products: tuple[SweepPoint, ...]
    notes: tuple[str, ...] = ()

    @property
    def best_read(self) -> SweepPoint:
        """The read that gave the bandwidth roof."""
        return max(self.reads, key=lambda point: point.best)

    @property
    def best_product(self) -> SweepPoint:
        """The product that gave the compute roof."""
        return max(self.products, key=lambda point: point.best)

    @property
    def is_disturbed(self) -> bool:
        """True when a roof rests on timings that other programs disturbed."""
        return self.best_read.is_disturbed or self.best_product.is_disturbed

    @property
    def ceilings(self) -> Ceilings:
        """The best rate of each sweep: a roof is what the device reached once."""
        method = (
            f"best of {self.best_read.repeats} timings: {self.best_read.label} for bytes/s, "
            f"{self.best_product.label} for FLOP/s; {self.machine}, {self.measured_at:%Y-%m-%d}"
        )
        method = "; ".join((method, *self.notes))
        return Ceilings(
            flops_per_s=self.best_product.best,
            bytes_per_s=self.best_read.best,
            source=Source.MEASURED,
            method=method,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Datasheet:
    """What a vendor states for one part: dense rates, without sparsity.

    Attributes:
        aliases: Exact names it is known by: NVML's first, then short ones.
        peaks: Pairs of dtype and dense FLOP/s of matrix products with float32 accumulation.
        memory_bytes: None where the part shares the machine's memory.
        document: The vendor's document that states the figures.
        read_at: Where they were read.
        read_on: When.
        is_confirmed: False when they could not be read again in any copy of the document.
        note: What a reader must know of them.
    """

    name: str
    aliases: tuple[str, ...]
    peaks: tuple[tuple[str, float], ...]
    bytes_per_s: float
    memory_bytes: int | None
    document: str
    read_at: str
    read_on: date
    is_confirmed: bool = True
    note: str = ""


class Bound(StrEnum):
    """Which limit a step is under."""

    MEMORY = "memory"
    COMPUTE = "compute"
    OVERHEAD = "overhead"


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """One step, or one part of it, against the roofs.

    Attributes:
        flops: Counted.
        bytes_moved: Counted.
        step_time_s: Measured.
        lower_bound_s: Counted: the longer of computing and moving at the roofs' rates.
        roof_ratio: Achieved as a share of the roof above this intensity: lower bound / step time.
        bound: Which limit it is under.
        alarm: How far above a roof it lies and what that means, in words to be put behind the
            step's name; empty where it lies under it.
        mfu_ratio: FLOPs / (step time x datasheet peak); None without a datasheet.
        mbu_ratio: Bytes / (step time x datasheet bandwidth); None without a datasheet.
    """

    part: Part
    flops: int
    bytes_moved: int
    step_time_s: float
    lower_bound_s: float
    roof_ratio: float
    bound: Bound
    alarm: str = ""
    mfu_ratio: float | None = None
    mbu_ratio: float | None = None

    @property
    def flops_per_byte(self) -> float:
        """Arithmetic intensity."""
        return self.flops / self.bytes_moved

    @property
    def flops_per_s(self) -> float:
        """Achieved rate of computing."""
        return self.flops / self.step_time_s

    @property
    def bytes_per_s(self) -> float:
        """Achieved rate of moving."""
        return self.bytes_moved / self.step_time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of a model: how many sequences, how long their prompts, how far along.

    Attributes:
        batch: Sequences that run together.
        context_tokens: Tokens in the cache at the decode step in question, its own included.
    """

    batch: int
    prompt_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a model would need at least on a device that is not here; all of it counted.

    Attributes:
        ttft_s: One step that feeds all prompts of the batch.
        itl_s: One decode step of the batch at the given context.
        sequence_tokens_per_s: Of one sequence, decode steps only.
        batch_tokens_per_s: Of all sequences, decode steps only.
        memory_needed_bytes: Weights and the K/V of every sequence at that context.
        fits: Whether that is within the device's memory; None when that is not known.
        prefill_bound: Memory or compute.
        decode_bound: Memory or compute.
        compute_bound_prompt_tokens: Shortest prompt whose prefill is compute-bound, if any is.
        compute_bound_batch: Smallest batch whose decode is compute-bound, if any is.
        kv_overtakes_batch: Smallest batch whose step reads more K/V than weights, if any does.
    """

    ceilings: Ceilings
    prefill: StepCost
    decode: StepCost
    ttft_s: float
    itl_s: float
    sequence_tokens_per_s: float
    batch_tokens_per_s: float
    memory_needed_bytes: int
    fits: bool | None
    prefill_bound: Bound
    decode_bound: Bound
    compute_bound_prompt_tokens: int | None
    compute_bound_batch: int | None
    kv_overtakes_batch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTiming:
    """Timings of one step that feeds some tokens of one sequence to an empty cache.

    Attributes:
        repeats: Timings behind the three figures.
        is_disturbed: True when other programs disturbed every timing, each time it was measured
            again; otherwise the figures are of undisturbed ones.
    """

    tokens: int
    best_s: float
    median_s: float
    worst_s: float
    repeats: int
    is_disturbed: bool = False

    @property
    def tokens_per_s(self) -> float:
        """Tokens fed a second at the median."""
        return self.tokens / self.median_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSweep:
    """How the time of a step grows with the tokens fed in it, measured on the model held.

    Attributes:
        points: By growing number of tokens, the first of one token.
        measured_at: UTC.
    """

    model_id: str
    device: Device
    measured_at: datetime
    points: tuple[TokenTiming, ...]

    @property
    def floor_s(self) -> float:
        """The time of a step of one token, as the chart shows it: all weights are read for it."""
        return self.points[0].median_s

    @property
    def most_tokens_per_s(self) -> float:
        """The highest rate reached at any number of tokens."""
        return max(point.tokens_per_s for point in self.points)
