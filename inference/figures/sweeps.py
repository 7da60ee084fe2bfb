"""What a sweep may say: readings that cannot be, and where a step turns from flat to growing.

Disturbance only makes a step longer. So where a step with less work was measured longer than one
with more, the reading of the one with less is wrong, and what rests on it is not known. No torch,
no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.records.batches import BatchSweep, BatchTiming
from inference.records.rooflines import TokenSweep, TokenTiming

# Source: our choice, the spread of quiet timings.
TOLERANCE = 0.05
# Source: our choice. A number between whose ends there is more than this factor is not known.
WIDEST = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCrossover:
    """Where the measured times turn from flat to growing.

    Attributes:
        tokens: None where that is not known.
        low: The same by the timings most in favour of few tokens; high: of many.
        reason: Why it is not known, in a sentence; empty where it is.
    """

    tokens: float | None
    low: float
    high: float
    reason: str = ""


def impossible(times: Sequence[tuple[int, float]]) -> frozenset[int]:
    """Return the amounts of work that took longer than more work did, beyond the tolerance.

    Args:
        times: Pairs of an amount, such as rows or tokens, and the seconds of a step of it.
    """
    return frozenset(
        amount
        for amount, seconds in times
        if any(more > amount and seconds * (1 - TOLERANCE) > other for more, other in times)
    )


def impossible_batches(points: Sequence[BatchTiming], context_tokens: int) -> frozenset[int]:
    """Return the batches at one context whose step was measured longer than that of more rows.

    That is the same as more than n times the tokens/s from n times the rows.
    """
    return impossible(
        [(one.batch, one.median_s) for one in points if one.context_tokens == context_tokens]
    )


def is_possible(sweep: BatchSweep, point: BatchTiming) -> bool:
    """Tell whether a point of the sweep can be what it was measured as."""
    return point.batch not in impossible_batches(sweep.points, point.context_tokens)


def left_disturbed(disturbed: int, points: int) -> str:
    """Return how many points of a sweep were disturbed each time; empty for none."""
    if not disturbed:
        return ""
    verb = "was" if disturbed == 1 else "were"
    return (
        f"{disturbed:,} of {points:,} points {verb} disturbed by other programs each time "
        "they were measured, up to four times. Measure again once the machine is idle."
    )


def measured_crossover(sweep: TokenSweep) -> MeasuredCrossover:
    """Return the tokens at which the time of one token meets the highest rate reached.

    Below, more tokens cost no more time.

    Source:
        The same construction as the ridge of a roofline: where two straight lines meet.
    """
    wrong = impossible([(one.tokens, one.median_s) for one in sweep.points])
    top = max(
        (one for one in sweep.points if one.tokens not in wrong),
        key=lambda one: one.tokens_per_s,
    )
    first = sweep.points[0]
    low = first.best_s * top.tokens / top.worst_s
    high = first.worst_s * top.tokens / top.best_s
    reason = _why_unknown(first, top, is_impossible=first.tokens in wrong, spread=high / low)
    tokens = None if reason else first.median_s * top.tokens_per_s
    return MeasuredCrossover(tokens=tokens, low=low, high=high, reason=reason)


def _why_unknown(
    first: TokenTiming, top: TokenTiming, *, is_impossible: bool, spread: float
) -> str:
    if is_impossible:
        return "a step of one token was measured longer than one of more tokens, which cannot be"
    if first.is_disturbed or top.is_disturbed:
        return "other programs disturbed these steps each time they were measured"
    if spread > WIDEST:
        return f"the timings leave a range of a factor of {spread:,.0f}"
    return ""
