"""A run's trace to its latency and throughput figures.

All figures are on the run's own time, step times and the idle waits between them, so neither
drawing nor pausing nor pacing is in them. A request arrives at a moment of that time; its wait for
a slot is what passes until its first step begins.
Cheap enough to be called for a growing run several times a second. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

import numpy as np
from numpy.typing import NDArray

from inference.records.errors import InputError
from inference.records.latency import LatencySummary
from inference.records.run import Request, RunTrace
from inference.records.steps import Phase, StepEvent


def latency_summary(trace: RunTrace, request_id: str) -> LatencySummary:
    """Return the latency figures of one request, of the tokens it has so far.

    - TTFT: from its arrival to the end of the step time of the first token, the wait for a slot
    included. - ITL: for each later token, the step times since the one before it in the same
      sequence, whatever those step times did: another row's prefill in between counts.
    - E2E: TTFT + all ITLs.
    - TPOT: the mean ITL, which is (E2E - TTFT)/(n - 1); None for fewer than two tokens.

    An ITL with an observed step in it stays in ``itl_s`` and E2E but is left out of the
    percentiles, TPOT and 1/TPOT; when every one is, those are None.

    Raises:
        InputError: The run has no such request.

    Source:
        The definitions of TTFT, ITL and TPOT in vLLM's serving benchmark (n - 1 intervals).
    """
    wanted = [request for request in trace.requests if request.request_id == request_id]
    if not wanted:
        msg = f"the run has no request {request_id!r}"
        raise InputError(msg)
    return _summaries(trace.events, wanted)[0]


def latency_summaries(trace: RunTrace) -> tuple[LatencySummary, ...]:
    """Return the figures of :func:`latency_summary` for every request, in the run's order."""
    return _summaries(trace.events, trace.requests)


def batch_tokens_per_s(trace: RunTrace) -> float | None:
    """Return tokens selected per second over all rows, in decode steps that were not observed."""
    steps = [e for e in trace.events if e.phase is Phase.DECODE and not e.observed]
    tokens = sum(row.token_id is not None for step in steps for row in step.rows)
    return _ratio(tokens, fsum(step.duration_s for step in steps))


def run_seconds(events: Iterable[StepEvent]) -> float:
    """Return the run's own time so far: its step times and the idle waits before them."""
    return fsum(event.duration_s + event.waited_s for event in events)


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
    events: Sequence[StepEvent], requests: Sequence[Request]
) -> tuple[LatencySummary, ...]:
    """Return one summary per request, in one pass over the events."""
    spans = _Spans(events)
    steps = _row_steps(events, [request.request_id for request in requests])
    return tuple(_summary(request, steps[request.request_id], spans) for request in requests)


class _Spans:
    """What a request's figures need of every event, one place an event.

    Attributes:
        began_s: When the step began, on the run's own time.
        ended_s: When it ended.
        is_prefill: It fed prompt tokens, of whichever row.
    """

    def __init__(self, events: Sequence[StepEvent]) -> None:
        self.step_times_s = np.fromiter((event.duration_s for event in events), dtype=np.float64)
        self.is_observed = np.fromiter((event.observed for event in events), dtype=np.bool_)
        self.is_cold = np.fromiter((event.cold for event in events), dtype=np.bool_)
        prefills = (event.phase is Phase.PREFILL for event in events)
        self.is_prefill = np.fromiter(prefills, dtype=np.bool_)
        waited_s = np.fromiter((event.waited_s for event in events), dtype=np.float64)
        self.ended_s: NDArray[np.float64] = np.cumsum(self.step_times_s + waited_s)
        self.began_s = self.ended_s - self.step_times_s


@dataclass(slots=True)
class _RowSteps:
    """Where one request is found among the events.

    Attributes:
        first: The event that fed it first; None before that.
        tokens: The events that selected its tokens.
    """

    first: int | None = None
    tokens: list[int] = field(default_factory=list)


def _row_steps(events: Iterable[StepEvent], request_ids: Iterable[str]) -> dict[str, _RowSteps]:
    """Return where each request is found."""
    steps = {request_id: _RowSteps() for request_id in request_ids}
    for position, event in enumerate(events):
        for row in event.rows:
            found = steps.get(row.request_id)
            if found is None:
                continue
            if found.first is None:
                found.first = position
            if row.token_id is not None:
                found.tokens.append(position)
    return steps


def _summary(request: Request, found: _RowSteps, spans: _Spans) -> LatencySummary:
    """Return one request's figures."""
    wait_s = None if found.first is None else float(spans.began_s[found.first]) - request.arrival_s
    steps = found.tokens
    if not steps:
        return _nothing_yet(request.request_id, wait_s)
    end = steps[-1] + 1
    starts = [0, *(step + 1 for step in steps[:-1])]  # of the span of step times behind each token
    first_s = float(spans.ended_s[steps[0]]) - request.arrival_s
    itl_s = np.add.reduceat(spans.step_times_s[:end], starts)[1:].tolist()
    has_observed = np.logical_or.reduceat(spans.is_observed[:end], starts)[1:]
    has_prefill = np.logical_or.reduceat(spans.is_prefill[:end], starts)[1:]
    counted_s = [itl for itl, skip in zip(itl_s, has_observed, strict=True) if not skip]
    e2e_s = fsum((first_s, *itl_s))
    tpot_s = fsum(counted_s) / len(counted_s) if counted_s else None
    return LatencySummary(
        request_id=request.request_id,
        output_tokens=len(steps),
        ttft_s=first_s,
        itl_s=tuple(itl_s),
        itl_p50_s=percentile(counted_s, 0.50),
        itl_p95_s=percentile(counted_s, 0.95),
        tpot_s=tpot_s,
        e2e_s=e2e_s,
        sequence_tokens_per_s=_ratio(1, tpot_s),
        e2e_tokens_per_s=_ratio(len(steps), e2e_s),
        is_cold=bool(spans.is_cold[:end].any()),
        excluded_steps=int(spans.is_observed[steps[0] + 1 : end].sum()),
        wait_s=wait_s,
        interrupted=tuple(np.flatnonzero(has_prefill).tolist()),
    )


def _nothing_yet(request_id: str, wait_s: float | None) -> LatencySummary:
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
        wait_s=wait_s,
    )


def _ratio(count: float, duration_s: float | None) -> float | None:
    """Return a rate per second; None where nothing was timed."""
    return count / duration_s if duration_s else None
