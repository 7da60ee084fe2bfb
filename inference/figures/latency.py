"""A run's steps to its latency and throughput figures.

All figures are on the run's own time, step times and the idle waits between them, so neither
drawing nor pausing nor pacing is in them. A request arrives at a moment of that time; its wait for
a slot is what passes until its first step begins.

:class:`RunningLatency` takes the steps one by one; the figures of a whole run are those of all its
steps taken. No torch, no clock.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

from inference.figures.disturbance import is_disturbed
from inference.records.errors import InputError
from inference.records.latency import LatencySummary
from inference.records.run import Request, RunTrace
from inference.records.steps import Phase, StepEvent


def latency_summary(trace: RunTrace, request_id: str) -> LatencySummary:
    """Return the latency figures of one request, of the tokens it has so far.

    - TTFT: from its arrival to the end of the step that selected its first token, the wait for a
      slot included. Step times are the engine's own: tokenising, drawing, a pause, and the hold of
      a run until its page is drawn are in none of them.
    - ITL: for each later token, the step times since the one before it in the same sequence,
      whatever those steps did: another row's prefill in between counts.
    - E2E: TTFT + all ITLs.
    - TPOT: the mean ITL, which is (E2E - TTFT)/(n - 1); None for fewer than two tokens.

    An ITL with an observed or a disturbed step in it stays in ``itl_s`` and E2E but is left out of
    the percentiles, TPOT and 1/TPOT. When every ITL that was not observed is disturbed, those are
    of the disturbed ones, and the summary says so; when every one is observed, they are None.

    Raises:
        InputError: The run has no such request.

    Source:
        The definitions of TTFT, ITL and TPOT in vLLM's serving benchmark (n - 1 intervals).
    """
    wanted = [request for request in trace.requests if request.request_id == request_id]
    if not wanted:
        msg = f"the run has no request {request_id!r}"
        raise InputError(msg)
    return RunningLatency(wanted, trace.events).summary(request_id)


def latency_summaries(trace: RunTrace) -> tuple[LatencySummary, ...]:
    """Return the figures of :func:`latency_summary` for every request, in the run's order."""
    return RunningLatency(trace.requests, trace.events).summaries()


def batch_tokens_per_s(trace: RunTrace) -> float | None:
    """Return tokens selected per second over all rows, in decode steps that were not observed.

    Disturbed steps are left out, unless every one of those was.
    """
    rate = _DecodeRate()
    for event in trace.events:
        rate.add(event)
    return rate.tokens_per_s()


def run_seconds(events: Iterable[StepEvent]) -> float:
    """Return the run's own time so far: its step times and the idle waits before them."""
    return fsum(event.duration_s + event.waited_s for event in events)


def percentile(values: Collection[float], share: float) -> float | None:
    """Return the value below which a share (0 to 1) of ``values`` lies; None when there are none.

    Between two values it runs in a straight line: the sorted values sit at 0, 1/(n-1), ..., 1.

    Source:
        Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 7.
    """
    return _percentile_of_sorted(sorted(values), share)


class RunningLatency:
    """The latency figures and the rate of a run's requests, step by step.

    A step costs the same however many went before, for whoever asks ten times a second.
    """

    def __init__(self, requests: Iterable[Request], events: Iterable[StepEvent] = ()) -> None:
        self._steps = _Steps()
        self._rate = _DecodeRate()
        self._latencies = {request.request_id: _Latency(request) for request in requests}
        for event in events:
            self.add(event)

    def add(self, event: StepEvent) -> None:
        """Take the next step."""
        self._steps.add(event)
        self._rate.add(event)
        for row in event.rows:
            latency = self._latencies.get(row.request_id)
            if latency is None:
                continue
            if latency.wait_s is None:
                began_s = self._steps.now_s - event.duration_s
                latency.wait_s = began_s - latency.request.arrival_s
            if row.token_id is not None:
                latency.add_token(self._steps)

    def summary(self, request_id: str) -> LatencySummary:
        """Return the figures of :func:`latency_summary` over the steps taken."""
        return self._latencies[request_id].summary()

    def summaries(self) -> tuple[LatencySummary, ...]:
        """Return those of every request, in the run's order."""
        return tuple(latency.summary() for latency in self._latencies.values())

    def batch_tokens_per_s(self) -> float | None:
        """Return the rate of :func:`batch_tokens_per_s` over the steps taken."""
        return self._rate.tokens_per_s()

    def row_tokens_per_s(self) -> float | None:
        """Return tokens selected per second and row that was fed, over the same steps."""
        return self._rate.row_tokens_per_s()


@dataclass(slots=True)
class _Steps:
    """What the requests' figures need of the steps so far; one list item a step.

    Attributes:
        now_s: The run's own time after the newest.
        observed: How many were observed.
        disturbed: How many of the others were disturbed.
        disturbed_until_s: The run's own time after the newest that was disturbed; 0 before any.
        is_cold: One of them may hold first-call costs.
    """

    step_times_s: list[float] = field(default_factory=list)
    is_observed: list[bool] = field(default_factory=list)
    is_disturbed: list[bool] = field(default_factory=list)
    is_prefill: list[bool] = field(default_factory=list)
    now_s: float = 0.0
    observed: int = 0
    disturbed: int = 0
    disturbed_until_s: float = 0.0
    is_cold: bool = False

    def add(self, event: StepEvent) -> None:
        """Take the next step."""
        lost = is_disturbed(event)
        self.step_times_s.append(event.duration_s)
        self.is_observed.append(event.observed)
        self.is_disturbed.append(lost)
        self.is_prefill.append(event.phase is Phase.PREFILL)
        self.now_s += event.duration_s + event.waited_s
        self.observed += event.observed
        self.disturbed += lost and not event.observed
        self.disturbed_until_s = self.now_s if lost else self.disturbed_until_s
        self.is_cold |= event.cold


@dataclass(slots=True)
class _DecodeRate:
    """Tokens and step times of the decode steps that were not observed.

    Attributes:
        tokens: In steps that were not disturbed, and in those that were.
        step_times_s: Likewise.
        row_times_s: Likewise, each step time once for each row that was fed.
    """

    tokens: list[int] = field(default_factory=lambda: [0, 0])
    step_times_s: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    row_times_s: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, event: StepEvent) -> None:
        """Take the next step."""
        if event.phase is Phase.DECODE and not event.observed:
            kind = int(is_disturbed(event))
            self.tokens[kind] += sum(row.token_id is not None for row in event.rows)
            self.step_times_s[kind].append(event.duration_s)
            self.row_times_s[kind] += event.duration_s * len(event.rows)

    def tokens_per_s(self) -> float | None:
        """Return the rate; None where nothing was timed."""
        kind = int(not self.step_times_s[0])
        return _ratio(self.tokens[kind], fsum(self.step_times_s[kind]))

    def row_tokens_per_s(self) -> float | None:
        """Return the rate of one row, the mean over rows and steps; None where none was timed."""
        kind = int(not self.step_times_s[0])
        return _ratio(self.tokens[kind], self.row_times_s[kind])


@dataclass(slots=True)
class _Latency:
    """One request's figures so far.

    Attributes:
        newest: Index of the step that selected its newest token; None before there is one.
        counted_s: The ITLs without an observed or a disturbed step, by size.
        disturbed_s: Those with a disturbed step and none observed, likewise.
        observed_before: Steps observed up to its first token.
        disturbed_before: Those disturbed and not observed.
    """

    request: Request
    wait_s: float | None = None
    ttft_s: float | None = None
    newest: int | None = None
    tokens: int = 0
    itl_s: list[float] = field(default_factory=list)
    counted_s: list[float] = field(default_factory=list)
    disturbed_s: list[float] = field(default_factory=list)
    interrupted: list[int] = field(default_factory=list)
    observed_before: int = 0
    observed: int = 0
    disturbed_before: int = 0
    disturbed: int = 0
    is_ttft_disturbed: bool = False
    is_cold: bool = False

    def add_token(self, steps: _Steps) -> None:
        """Count a token selected by the newest step."""
        index = len(steps.step_times_s) - 1
        if self.newest is None:
            self.ttft_s = steps.now_s - self.request.arrival_s
            self.observed_before = steps.observed
            self.disturbed_before = steps.disturbed
            self.is_ttft_disturbed = steps.disturbed_until_s > self.request.arrival_s
        else:
            self._add_interval(slice(self.newest + 1, index + 1), steps)
        self.newest = index
        self.tokens += 1
        self.observed = steps.observed - self.observed_before
        self.disturbed = steps.disturbed - self.disturbed_before
        self.is_cold = steps.is_cold

    def _add_interval(self, since_token: slice, steps: _Steps) -> None:
        itl_s = sum(steps.step_times_s[since_token])
        if any(steps.is_prefill[since_token]):
            self.interrupted.append(len(self.itl_s))
        self.itl_s.append(itl_s)
        if any(steps.is_observed[since_token]):
            return
        is_clean = not any(steps.is_disturbed[since_token])
        insort(self.counted_s if is_clean else self.disturbed_s, itl_s)

    def summary(self) -> LatencySummary:
        """Return the figures; None where too little was measured."""
        counted_s = self.counted_s or self.disturbed_s
        tpot_s = fsum(counted_s) / len(counted_s) if counted_s else None
        e2e_s = None if self.ttft_s is None else fsum((self.ttft_s, *self.itl_s))
        return LatencySummary(
            request_id=self.request.request_id,
            output_tokens=self.tokens,
            ttft_s=self.ttft_s,
            itl_s=tuple(self.itl_s),
            itl_p50_s=_percentile_of_sorted(counted_s, 0.50),
            itl_p95_s=_percentile_of_sorted(counted_s, 0.95),
            tpot_s=tpot_s,
            e2e_s=e2e_s,
            sequence_tokens_per_s=_ratio(1, tpot_s),
            e2e_tokens_per_s=_ratio(self.tokens, e2e_s),
            is_cold=self.is_cold,
            excluded_steps=self.observed,
            wait_s=self.wait_s,
            interrupted=tuple(self.interrupted),
            disturbed_steps=self.disturbed,
            is_all_disturbed=bool(self.disturbed_s) and not self.counted_s,
            is_ttft_disturbed=self.is_ttft_disturbed,
        )


def _percentile_of_sorted(ordered: Sequence[float], share: float) -> float | None:
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _ratio(count: float, duration_s: float | None) -> float | None:
    """Return a rate per second; None where nothing was timed."""
    return count / duration_s if duration_s else None
