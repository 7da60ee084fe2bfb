"""Runs of several engines on one prompt, this machine's among them, each figure with its origin.

A local figure is a sum of step times and has no network in it; a remote one is from sending to a
network read. So each column says what it rests on, and nothing is divided by anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from inference.figures.arrivals import arrival_figures
from inference.figures.latency import latency_summary
from inference.records.arrivals import RemoteRun
from inference.records.run import RunTrace
from visuals.charts.arrivals import gap_name
from visuals.charts.theme import Row
from visuals.charts.units import DASH, amount, milliseconds

FROM_STEPS = "sums of step times, without network and queue of others"
FROM_READS = "from sending to network reads, seen from here"


def side_by_side(remote: Sequence[RemoteRun], local: Sequence[RunTrace]) -> list[Row]:
    """Return a row for the first request of each run."""
    return [*(_remote_row(run) for run in remote), *(_local_row(trace) for trace in local)]


def prompts_of(remote: Sequence[RemoteRun], local: Sequence[RunTrace]) -> set[str]:
    """Return the different prompts of the first requests; two figures compare where it is one."""
    asked = [run.requests[0].ask.prompt_text for run in remote]
    return {*asked, *(trace.requests[0].prompt_text for trace in local)}


def _remote_row(run: RemoteRun) -> Row:
    request = run.requests[0]
    figures = arrival_figures(request)
    counts = figures.counts
    name = f"{run.endpoint.engine.value} {run.endpoint.version}".strip()
    at_least = "at least " if figures.is_tpot_at_least and figures.tpot_s is not None else ""
    return {
        "Engine": f"{name}{_one_of(len(run.requests))}",
        "Where": run.endpoint.address,
        "Model": request.ask.model_id,
        "Output tokens": f"{counts.total:,} ({counts.source.value})" if counts.total else DASH,
        "TTFT": amount(milliseconds(figures.ttft_s), "ms"),
        "TPOT": f"{at_least}{amount(milliseconds(figures.tpot_s), 'ms')}",
        "Between": f"{amount(milliseconds(figures.gap_p50_s), 'ms')} ({gap_name(figures)}, median)",
        "Rests on": FROM_READS,
    }


def _local_row(trace: RunTrace) -> Row:
    summary = latency_summary(trace, trace.requests[0].request_id)
    return {
        "Engine": f"this program's own{_one_of(len(trace.requests))}",
        "Where": trace.info.device.name,
        "Model": trace.info.model_id,
        "Output tokens": f"{summary.output_tokens:,} (token ids)",
        "TTFT": amount(milliseconds(summary.ttft_s), "ms"),
        "TPOT": amount(milliseconds(summary.tpot_s), "ms"),
        "Between": f"{amount(milliseconds(summary.itl_p50_s), 'ms')} (ITL, median)",
        "Rests on": FROM_STEPS,
    }


def _one_of(requests: int) -> str:
    return f", the first of {requests:,} requests" if requests > 1 else ""
