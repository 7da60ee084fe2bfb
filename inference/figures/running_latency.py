"""The latency figures of a growing run, carried on from step to step.

They are those of ``latency.py``, for whoever asks ten times a second: a step costs the same however
many went before. No torch, no clock.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

from inference.records.latency import LatencySummary
from inference.records.run import Request
from inference.records.steps import Phase, StepEvent


@dataclass(slots=True)
class _Steps:
    """What the steps of a run so far come to, one place a step.

    Attributes:
        now_s: The run's own time after the newest.
        observed: How many were observed.
        is_cold: One of them may hold first-call costs.
    """

    step_times_s: list[float] = field(default_factory=list)
    is_observed: list[bool] = field(default_factory=list)
    is_prefill: list[bool] = field(default_factory=list)
    now_s: float = 0.0
    observed: int = 0
    is_cold: bool = False

    def add(self, event: StepEvent) -> None:
        """Take the next step."""
        self.step_times_s.append(event.duration_s)
        self.is_observed.append(event.observed)
        self.is_prefill.append(event.phase is Phase.PREFILL)
        self.now_s += event.duration_s + event.waited_s
        self.observed += event.observed
        self.is_cold |= event.cold


@dataclass(slots=True)
class _Latency:
    """One request's figures so far.

    Attributes:
        newest: The step that selected its newest token; None before there is one.
        sorted_s: The ITLs without an observed step, by size.
        counted_s: The same in the order of the tokens.
        observed_before: Steps observed up to its first token.
    """

    request: Request
    wait_s: float | None = None
    ttft_s: float | None = None
    newest: int | None = None
    tokens: int = 0
    itl_s: list[float] = field(default_factory=list)
    counted_s: list[float] = field(default_factory=list)
    sorted_s: list[float] = field(default_factory=list)
    interrupted: list[int] = field(default_factory=list)
    observed_before: int = 0
    observed: int = 0
    is_cold: bool = False

    def select(self, steps: _Steps) -> None:
        """Take it that the newest step selected a token."""
        at = len(steps.step_times_s) - 1
        if self.newest is None:
            self.ttft_s = steps.now_s - self.request.arrival_s
            self.observed_before = steps.observed
        else:
            self._wait(slice(self.newest + 1, at + 1), steps)
        self.newest = at
        self.tokens += 1
        self.observed = steps.observed - self.observed_before
        self.is_cold = steps.is_cold

    def _wait(self, span: slice, steps: _Steps) -> None:
        """Take the step times behind a token after the first."""
        itl_s = sum(steps.step_times_s[span])
        if any(steps.is_prefill[span]):
            self.interrupted.append(len(self.itl_s))
        self.itl_s.append(itl_s)
        if not any(steps.is_observed[span]):
            self.counted_s.append(itl_s)
            insort(self.sorted_s, itl_s)

    def summary(self) -> LatencySummary:
        """Return the figures; None where too little was measured."""
        tpot_s = fsum(self.counted_s) / len(self.counted_s) if self.counted_s else None
        e2e_s = None if self.ttft_s is None else fsum((self.ttft_s, *self.itl_s))
        return LatencySummary(
            request_id=self.request.request_id,
            output_tokens=self.tokens,
            ttft_s=self.ttft_s,
            itl_s=tuple(self.itl_s),
            itl_p50_s=_percentile(self.sorted_s, 0.50),
            itl_p95_s=_percentile(self.sorted_s, 0.95),
            tpot_s=tpot_s,
            e2e_s=e2e_s,
            sequence_tokens_per_s=1 / tpot_s if tpot_s else None,
            e2e_tokens_per_s=self.tokens / e2e_s if e2e_s else None,
            is_cold=self.is_cold,
            excluded_steps=self.observed,
            wait_s=self.wait_s,
            interrupted=tuple(self.interrupted),
        )


class RunningLatency:
    """Latency and rates of all requests of a run, step by step."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._steps = _Steps()
        self._of = {request.request_id: _Latency(request) for request in requests}
        self._decode_s: list[float] = []
        self._decode_tokens = 0

    def add(self, event: StepEvent) -> None:
        """Take the next step."""
        self._steps.add(event)
        began_s = self._steps.now_s - event.duration_s
        selected = 0
        for row in event.rows:
            latency = self._of.get(row.request_id)
            if latency is None:
                continue
            if latency.wait_s is None:
                latency.wait_s = began_s - latency.request.arrival_s
            if row.token_id is not None:
                latency.select(self._steps)
                selected += 1
        if event.phase is Phase.DECODE and not event.observed:
            self._decode_s.append(event.duration_s)
            self._decode_tokens += selected

    def summary(self, request_id: str) -> LatencySummary:
        """Return what ``metrics.latency_summary`` does of the steps taken."""
        return self._of[request_id].summary()

    def summaries(self) -> tuple[LatencySummary, ...]:
        """Return what ``metrics.latency_summaries`` does of the steps taken."""
        return tuple(latency.summary() for latency in self._of.values())

    def batch_tokens_per_s(self) -> float | None:
        """Return what ``metrics.batch_tokens_per_s`` does of the steps taken."""
        seconds = fsum(self._decode_s)
        return self._decode_tokens / seconds if seconds else None


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which a share of values lies, as ``metrics.percentile`` does."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
