"""The self-check of a model: what was compared with what on this machine, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from inference.records.model import Device


class CheckKind(StrEnum):
    """What is checked, in the order in which it is: what takes least time first."""

    CACHE = "cache"
    CLOCK = "clock"
    IDS = "ids"
    LOGITS = "logits"
    KERNELS = "kernels"
    ATTENTION = "attention"


class CheckOutcome(StrEnum):
    """What came of a comparison."""

    PASSED = "passed"
    DIFFERS = "differs"
    IMPOSSIBLE = "not possible here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison.

    Attributes:
        compared: What of this program.
        reference: With what.
        found: The result in words, its numbers included; empty where there is none.
        error: The difference as a number; None where there is none.
        tolerance: The most that the difference may be; None where there is no comparison.
        allowed: The tolerance in words.
        reason: Why it was not possible, or what else must be known; empty when nothing must.
        is_late: Not possible only because the time for all checks was used up.
    """

    kind: CheckKind
    outcome: CheckOutcome
    compared: str
    reference: str
    found: str = ""
    error: float | None = None
    tolerance: float | None = None
    allowed: str = ""
    reason: str = ""
    is_late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSubject:
    """What a self-check holds for: with any other of these it is done anew.

    Attributes:
        attention: The attention implementation the model resolved to.
        kernels: What small steps are computed with.
        machine: Processor or accelerator, threads, system.
        versions: Pairs of package name and version.
        program: Digest of this program's own sources.
        weights: Digest of the model's settings and of a sample of every weight tensor.
    """

    model_id: str
    device: Device
    attention: str
    kernels: str
    machine: str
    versions: tuple[tuple[str, str], ...]
    program: str
    weights: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """The checks of one model, as far as they are done.

    Attributes:
        checked_at: UTC.
        took_s: Time spent, without what came between.
        checks: Those that are done, in order.
        is_whole: All are.
    """

    subject: CheckSubject
    checked_at: datetime
    took_s: float = 0.0
    checks: tuple[Check, ...] = ()
    is_whole: bool = False

    def of(self, outcome: CheckOutcome) -> tuple[Check, ...]:
        """Return the checks with this outcome."""
        return tuple(check for check in self.checks if check.outcome is outcome)

    @property
    def is_cut_short(self) -> bool:
        """Whether some checks were left out for want of time."""
        return any(check.is_late for check in self.checks)

    @property
    def warning(self) -> str:
        """What differs, as a sentence for the figures of every run; empty when nothing does."""
        differing = self.of(CheckOutcome.DIFFERS)
        if not differing:
            return ""
        what = "; ".join(f"{check.kind} ({check.found or check.reason})" for check in differing)
        return f"The self-check of this model on this machine differs: {what}."
