"""The records of a sweep over batch and context: measured, predicted, and skipped.

They keep the rules of the package: frozen, SI units in the suffix, ``None`` for what is not
known. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from inference.records.costs import StepCost
from inference.records.model import Device, ModelShape
from inference.records.rooflines import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """Timings of decode steps of one batch that lead up to one context length.

    Attributes:
        used_bytes: Of the K/V at that context, read off its tensors.
        repeats: Timings behind the three figures.
        is_disturbed: True when other programs disturbed every timing, each time it was measured
            again; otherwise the figures are of undisturbed ones.
    """

    batch: int
    context_tokens: int
    best_s: float
    median_s: float
    worst_s: float
    repeats: int
    used_bytes: int
    is_disturbed: bool = False

    @property
    def sequence_tokens_per_s(self) -> float:
        """Tokens a second of one row."""
        return 1 / self.median_s

    @property
    def batch_tokens_per_s(self) -> float:
        """Tokens a second of all rows."""
        return self.batch / self.median_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPoint:
    """A point of the sweep that was not measured, and why in a sentence."""

    batch: int
    context_tokens: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSweep:
    """Decode steps by batch and context, measured on the model held.

    Attributes:
        measured_at: UTC.
        points: In the order in which they were measured.
        is_whole: False while it goes on, and when it was stopped before its end.
    """

    model_id: str
    shape: ModelShape
    device: Device
    measured_at: datetime
    points: tuple[BatchTiming, ...]
    left_out: tuple[SkippedPoint, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPrediction:
    """What one decode step of a batch needs at least under given roofs; all of it counted.

    Attributes:
        step_s: The longer of computing and moving.
        bound: The roof that it is under.
    """

    batch: int
    context_tokens: int
    cost: StepCost
    step_s: float
    bound: Bound

    @property
    def batch_tokens_per_s(self) -> float:
        """Tokens a second of all rows, at most."""
        return self.batch / self.step_s

    @property
    def sequence_tokens_per_s(self) -> float:
        """Tokens a second of one row, at most."""
        return 1 / self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Where the benefit of a batch ends at one context; all of it counted.

    Attributes:
        kv_overtakes_batch: Smallest batch whose step reads at least as many K/V bytes as weights.
        linear_compute_batch: Smallest batch whose linear operations are compute-bound.
        most_rows: Rows whose K/V fits beside the weights; None where the memory is not known.
    """

    context_tokens: int
    kv_overtakes_batch: int | None
    linear_compute_batch: int | None
    most_rows: int | None
