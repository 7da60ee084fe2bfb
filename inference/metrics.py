"""A run's trace to its latency and throughput figures.

All figures are sums of laps, so neither drawing nor pausing nor pacing is in them. Every request of
a run is taken to have arrived when the run began: its wait for a slot is the laps before its first.
Cheap enough to be called for a growing run several times a second. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import fsum

import numpy as np
from numpy.typing import NDArray

from inference.errors import InputError
from inference.records import LatencySummary, Phase, RunTrace, StepEvent


def latency_summary(trace: RunTrace, request_id: str) -> LatencySummary:
    """Return the latency figures of one request, of the tokens it has so far.

    - TTFT: the laps up to the first token, a wait for a slot included.
    - ITL: for each later token, the laps since the one before it in the same sequence, whatever
      those laps did: another row's prefill in between counts.
    - E2E: TTFT + all ITLs.
    - TPOT: the mean ITL, which is (E2E - TTFT)/(n - 1); None for fewer than two tokens.

    An ITL with an observed step in it stays in ``itl_s`` and E2E but is left out of the
    percentiles, TPOT and 1/TPOT; when every one is, those are None.

    Raises:
        InputError: The run has no such request.

    Source:
        The definitions of TTFT, ITL and TPOT in vLLM's serving benchmark (n - 1 intervals).
    """
    if all(request.request_id != request_id for request in trace.requests):
        msg = f"the run has no request {request_id!r}"
        raise InputError(msg)
    return _summaries(trace.events, (request_id,))[0]


def latency_summaries(trace: RunTrace) -> tuple[LatencySummary, ...]:
    """Return the figures of :func:`latency_summary` for every request, in the run's order."""
    return _summaries(trace.events, tuple(request.request_id for request in trace.requests))


def batch_tokens_per_s(trace: RunTrace) -> float | None:
    """Return tokens selected per second over all rows, in decode steps that were not observed."""
    steps = [e for e in trace.events if e.phase is Phase.DECODE and not e.observed]
    tokens = sum(row.token_id is not None for step in steps for row in step.rows)
    return _ratio(tokens, fsum(step.duration_s for step in steps))


def percentile(values: Collection[float], share: float) -> float | None:
    """Return the value below which a share (0 to 1) of ``values`` lies; None when there are none.

    Between two values it runs in a straight line: the sorted values sit at 0, 1/(n-1), ..., 1.

    Source:
        Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 7.
    """
    if not values:
        return None
    return float(np.quantile(np.fromiter(values, dtype=np.float64), share, method="linear"))


def _summaries(
    events: Sequence[StepEvent], request_ids: Sequence[str]
) -> tuple[LatencySummary, ...]:
    """Return one summary per request, in one pass over the events."""
    token_steps = _token_steps(events, request_ids)
    laps_s = np.fromiter((event.duration_s for event in events), dtype=np.float64)
    is_observed = np.fromiter((event.observed for event in events), dtype=np.bool_)
    is_cold = np.fromiter((event.cold for event in events), dtype=np.bool_)
    return tuple(
        _summary(request_id, steps, laps_s, is_observed, is_cold)
        for request_id, steps in token_steps.items()
    )


def _token_steps(events: Iterable[StepEvent], request_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return, for each request, the positions of the events that selected its tokens."""
    steps: dict[str, list[int]] = {request_id: [] for request_id in request_ids}
    for position, event in enumerate(events):
        for row in event.rows:
            if row.token_id is not None and row.request_id in steps:
                steps[row.request_id].append(position)
    return steps


def _summary(
    request_id: str,
    steps: list[int],
    laps_s: NDArray[np.float64],
    is_observed: NDArray[np.bool_],
    is_cold: NDArray[np.bool_],
) -> LatencySummary:
    """Return one request's figures; ``steps`` are the events of its tokens, the rest per event."""
    if not steps:
        return _nothing_yet(request_id)
    end = steps[-1] + 1
    starts = [0, *(step + 1 for step in steps[:-1])]  # of the span of laps behind each token
    first, *itl_s = np.add.reduceat(laps_s[:end], starts).tolist()
    has_observed = np.logical_or.reduceat(is_observed[:end], starts)[1:]
    counted_s = [itl for itl, skip in zip(itl_s, has_observed, strict=True) if not skip]
    e2e_s = fsum((first, *itl_s))
    tpot_s = fsum(counted_s) / len(counted_s) if counted_s else None
    return LatencySummary(
        request_id=request_id,
        output_tokens=len(steps),
        ttft_s=first,
        itl_s=tuple(itl_s),
        itl_p50_s=percentile(counted_s, 0.50),
        itl_p95_s=percentile(counted_s, 0.95),
        tpot_s=tpot_s,
        e2e_s=e2e_s,
        sequence_tokens_per_s=_ratio(1, tpot_s),
        e2e_tokens_per_s=_ratio(len(steps), e2e_s),
        is_cold=bool(is_cold[:end].any()),
        excluded_steps=int(is_observed[steps[0] + 1 : end].sum()),
    )


def _nothing_yet(request_id: str) -> LatencySummary:
    """Return the figures of a request without a token: all unknown."""
    return LatencySummary(
        request_id=request_id,
        output_tokens=0,
        ttft_s=None,
        itl_s=(),
        itl_p50_s=None,
        itl_p95_s=None,
        tpot_s=None,
        e2e_s=None,
        sequence_tokens_per_s=None,
        e2e_tokens_per_s=None,
        is_cold=False,
        excluded_steps=0,
    )


def _ratio(count: float, duration_s: float | None) -> float | None:
    """Return a rate per second; None where nothing was timed."""
    return count / duration_s if duration_s else None
