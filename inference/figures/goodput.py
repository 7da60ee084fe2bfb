"""How many requests kept a reader's limits on their latency. No torch, no clock."""

from __future__ import annotations

from inference.figures.latency import latency_summaries, run_seconds
from inference.records.latency import Goodput, LatencySummary
from inference.records.run import RunTrace


def goodput(trace: RunTrace, *, ttft_s: float, tpot_s: float) -> Goodput:
    """Return how many finished requests kept both limits, and how many of those a second.

    A request of one token has no TPOT and needs to keep the first limit only. One of several
    tokens whose every ITL has an observed step in it has none either: it is undecided.

    Args:
        trace: The run.
        ttft_s: Longest TTFT that is good, the wait for a slot included.
        tpot_s: Longest mean ITL that is good.

    Source:
        Goodput of vLLM's serving benchmark: requests that meet all their limits, per second.
    """
    done = {row.request_id for event in trace.events for row in event.rows if row.finish}
    verdicts = {
        summary.request_id: _is_good(summary, ttft_s, tpot_s)
        for summary in latency_summaries(trace)
        if summary.request_id in done
    }
    good = tuple(request_id for request_id, is_good in verdicts.items() if is_good)
    undecided = tuple(request_id for request_id, is_good in verdicts.items() if is_good is None)
    seconds = run_seconds(trace.events)
    is_unknown = not seconds or (undecided and len(undecided) == len(verdicts))
    return Goodput(
        good=good,
        undecided=undecided,
        finished=len(verdicts),
        requests_per_s=None if is_unknown else len(good) / seconds,
    )


def _is_good(summary: LatencySummary, ttft_s: float, tpot_s: float) -> bool | None:
    """Tell whether a finished request kept both limits; None where that was not measured."""
    if summary.ttft_s is None:
        return None
    if summary.ttft_s > ttft_s:
        return False
    if summary.tpot_s is None:
        return None if summary.output_tokens > 1 else True
    return summary.tpot_s <= tpot_s
