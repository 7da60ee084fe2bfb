"""Readings of an engine's metrics to rates, shares and ranges. No torch, no clock.

A counter that fell belongs to an engine that was started anew: nothing is known across that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from inference.records.serving import Buckets, EngineReading, EngineRow, Latency

LEAST_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRates:
    """What an engine did between two readings; None where its counters do not say, or fell.

    Attributes:
        at: UTC, of the later one.
        prompt_tokens_per_s: Tokens of prompts, as the engine counts them.
        output_tokens_per_s: Tokens that it generated.
        prefix_hit_ratio: Share of the tokens looked up that its cache had; None where none were.
        accepted_ratio: Share of drafted tokens that were taken, likewise.
    """

    at: datetime
    prompt_tokens_per_s: float | None
    output_tokens_per_s: float | None
    prefix_hit_ratio: float | None
    accepted_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Where a share of the requests lies: above one bound of a bucket and up to the next.

    Attributes:
        high_s: None where it is beyond the last bound.
        requests: How many are in the buckets.
    """

    low_s: float
    high_s: float | None
    requests: int


def engine_rates(readings: Sequence[EngineReading], engine: str = "") -> tuple[EngineRates, ...]:
    """Return the rates between each reading and the one before, of one engine or of all."""
    rows = [(one.at, row_of(one, engine)) for one in readings]
    return tuple(
        _rates(before, after, row, later)
        for (before, row), (after, later) in pairwise(rows)
        if row is not None and later is not None and (after - before).total_seconds() >= LEAST_S
    )


def row_of(reading: EngineReading, engine: str = "") -> EngineRow | None:
    """Return what a reading says of an engine, or of all for an empty name."""
    if not engine:
        return reading.whole
    return next((one for one in reading.engines if one.engine == engine), None)


def since(readings: Sequence[EngineReading], seconds: float) -> tuple[EngineReading, ...]:
    """Return the readings that could be read, of the last seconds before the newest one."""
    known = [one for one in readings if one.whole is not None]
    if not known:
        return ()
    begin = known[-1].at - timedelta(seconds=seconds)
    return tuple(one for one in known if one.at >= begin)


def latency_range(
    before: EngineRow, after: EngineRow, latency: Latency, ratio: float
) -> Range | None:
    """Return between which bounds a share of the requests lies that were counted in between.

    Buckets say no more than that: a point inside of one would be made up.

    Returns:
        None where the engine keeps no such buckets, they changed, or no request was counted.
    """
    counts = _counted(before, after, latency)
    if counts is None or counts[-1][1] <= 0:
        return None
    whole = counts[-1][1]
    low_s = 0.0
    for bound, count in counts[:-1]:
        if count >= ratio * whole:
            return Range(low_s=low_s, high_s=bound, requests=whole)
        low_s = bound
    return Range(low_s=low_s, high_s=None, requests=whole)


def _counted(
    before: EngineRow, after: EngineRow, latency: Latency
) -> tuple[tuple[float, int], ...] | None:
    first, last = _buckets(before, latency), _buckets(after, latency)
    if first is None or last is None:
        return None
    if [bound for bound, _ in first.at_most] != [bound for bound, _ in last.at_most]:
        return None
    pairs = zip(first.at_most, last.at_most, strict=True)
    counts = tuple((bound, count - former) for (_, former), (bound, count) in pairs)
    is_rising = all(one[1] <= other[1] for one, other in pairwise(counts))
    return counts if is_rising and counts[0][1] >= 0 else None


def _buckets(row: EngineRow, latency: Latency) -> Buckets | None:
    return next((one for one in row.latencies if one.latency is latency), None)


def _rates(before: datetime, after: datetime, row: EngineRow, later: EngineRow) -> EngineRates:
    seconds = (after - before).total_seconds()
    fed = _grown(row.prompt_tokens, later.prompt_tokens)
    made = _grown(row.output_tokens, later.output_tokens)
    return EngineRates(
        at=after,
        prompt_tokens_per_s=None if fed is None else fed / seconds,
        output_tokens_per_s=None if made is None else made / seconds,
        prefix_hit_ratio=_share(
            _grown(row.prefix_hit_tokens, later.prefix_hit_tokens),
            _grown(row.prefix_asked_tokens, later.prefix_asked_tokens),
        ),
        accepted_ratio=_share(
            _grown(row.accepted_tokens, later.accepted_tokens),
            _grown(row.drafted_tokens, later.drafted_tokens),
        ),
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole or part > whole else part / whole
