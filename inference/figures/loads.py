"""Many requests to one endpoint to the figures of its load. No torch, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.figures.arrivals import ArrivalFigures, arrival_figures
from inference.figures.latency import percentile
from inference.records.arrivals import RemoteRequest, RemoteRun, Spacing
from inference.records.endpoints import EngineGauges
from inference.records.status import RunState

LATE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The 50th, 95th and 99th of a hundred values; None where there are none."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFigures:
    """The figures of one load, its warm-up left out; None where it cannot be known.

    Attributes:
        finished: Requests that came to their end.
        failed: Those that did not.
        ttft_s: Of requests that finished: from planned in an open loop, so that waiting on this
            side counts; from sent in a closed one.
        tpot_s: Likewise.
        gaps_s: Between reads that brought tokens, of all of them.
        wait_s: From planned to sent: this side's own.
        wanted_per_s: The rate that was to be sent; None in a closed loop.
        sent_per_s: The rate that was.
        finished_per_s: Requests that finished, by the time from the first sent to the last ended.
        tokens_per_s: Their output tokens by the same time; None where one's are not known.
        good: Requests that kept both limits; None where no limits were given.
        good_per_s: Likewise, by the same time.
        undecided: Requests of several tokens that came in one read, so that TPOT is not known.
        cached_tokens: Tokens of their prompts that the engine had; None where it does not say.
        prefix_hit_ratio: Share of the tokens looked up in the engine's cache of prefixes that it
            had, by its own counters over the load, warm-up and other users included.
        is_late: This side's event loop was late, so moments are too.
    """

    finished: int
    failed: int
    ttft_s: Spread
    tpot_s: Spread
    gaps_s: Spread
    wait_s: Spread
    wanted_per_s: float | None
    sent_per_s: float | None
    finished_per_s: float | None
    tokens_per_s: float | None
    good: int | None
    good_per_s: float | None
    undecided: int | None
    cached_tokens: int | None
    prefix_hit_ratio: float | None
    is_late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a reader takes for good: the longest TTFT and the longest TPOT."""

    ttft_s: float
    tpot_s: float


def load_figures(run: RemoteRun, limits: Limits | None = None) -> LoadFigures:
    """Return the figures of one load.

    Source:
        Goodput of vLLM's serving benchmark: requests that meet all their limits, per second.
    """
    measured = [one for one in run.requests if not one.is_warm_up]
    done = [one for one in measured if one.state is RunState.DONE]
    figures = [arrival_figures(one) for one in done]
    is_open = run.load is not None and run.load.spacing is not Spacing.CLOSED
    ttfts = [one.ttft_planned_s if is_open else one.ttft_s for one in figures]
    window_s = _window_s(measured)
    totals = [one.counts.total for one in figures]
    known = [total for total in totals if total is not None]
    verdicts = (
        None
        if limits is None
        else [_is_good(one, ttft, limits) for one, ttft in zip(figures, ttfts, strict=True)]
    )
    good = None if verdicts is None else verdicts.count(True)
    cached = [one.usage.cached_tokens for one in done if one.usage is not None]
    said = [count for count in cached if count is not None]
    return LoadFigures(
        finished=len(done),
        failed=len(measured) - len(done),
        ttft_s=_spread(ttfts),
        tpot_s=_spread([one.tpot_s for one in figures]),
        gaps_s=_spread([gap for one in figures for gap in one.gaps_s]),
        wait_s=_spread([_wait_s(one) for one in measured]),
        wanted_per_s=None if run.load is None else run.load.rate_per_s,
        sent_per_s=_sent_per_s(measured),
        finished_per_s=_rate(len(done), window_s),
        tokens_per_s=_rate(sum(known), window_s) if len(known) == len(totals) else None,
        good=good,
        good_per_s=None if good is None else _rate(good, window_s),
        undecided=None if verdicts is None else verdicts.count(None),
        cached_tokens=sum(said) if said else None,
        prefix_hit_ratio=_prefix_hit_ratio(run.gauges_before, run.gauges_after),
        is_late=run.lateness_s is not None and run.lateness_s > LATE_S,
    )


def _prefix_hit_ratio(before: EngineGauges | None, after: EngineGauges | None) -> float | None:
    """Return the share of hits between two looks; None where the counters do not say, or fell."""
    if before is None or after is None:
        return None
    counts = (before.prefix_hit_tokens, after.prefix_hit_tokens)
    asked = (before.prefix_asked_tokens, after.prefix_asked_tokens)
    if counts[0] is None or counts[1] is None or asked[0] is None or asked[1] is None:
        return None
    hits, looked_up = counts[1] - counts[0], asked[1] - asked[0]
    return hits / looked_up if 0 <= hits <= looked_up and looked_up > 0 else None


def _is_good(figures: ArrivalFigures, ttft_s: float | None, limits: Limits) -> bool | None:
    """Tell whether a request kept both limits; one of a single token has no TPOT to keep.

    None where its TPOT is not known.
    """
    if ttft_s is None or ttft_s > limits.ttft_s:
        return False
    if figures.tpot_s is None:
        return True if figures.counts.total == 1 else None
    return figures.tpot_s <= limits.tpot_s


def _window_s(requests: Sequence[RemoteRequest]) -> float | None:
    """Return the time from the first that was sent to the last that ended."""
    sent = [one.marks.sent_s for one in requests if one.marks.sent_s is not None]
    ended = [one.marks.ended_s for one in requests if one.marks.ended_s is not None]
    return max(ended) - min(sent) if sent and ended else None


def _sent_per_s(requests: Sequence[RemoteRequest]) -> float | None:
    """Return the rate at which requests were sent: distances by the time that they took."""
    sent = sorted(one.marks.sent_s for one in requests if one.marks.sent_s is not None)
    return _rate(len(sent) - 1, sent[-1] - sent[0]) if len(sent) > 1 else None


def _wait_s(request: RemoteRequest) -> float | None:
    sent_s = request.marks.sent_s
    return None if sent_s is None else sent_s - request.marks.planned_s


def _spread(values: Sequence[float | None]) -> Spread:
    known = sorted(value for value in values if value is not None)
    return Spread(
        p50=percentile(known, 0.50), p95=percentile(known, 0.95), p99=percentile(known, 0.99)
    )


def _rate(count: int, duration_s: float | None) -> float | None:
    return count / duration_s if duration_s else None
