"""What a batch's step shares and does not: weights read once, each row's own K/V. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from inference.counting.costs import kv_stored_bytes
from inference.counting.what_if import as_stored
from inference.figures.latency import RunningLatency
from inference.records.latency import LatencySummary
from inference.records.options import Policy
from inference.records.run import Request, RunInfo
from visuals.charts.roofline_rows import cost_of
from visuals.charts.slots import Assigned, SlotStep
from visuals.charts.units import DASH, amount, mebibytes, milliseconds, significant

Frame = dict[str, object]


def step_picture(step: SlotStep, prompts: Sequence[int], policy: Policy) -> Frame:
    """Return what the picture of one step needs: total T, and each row's fed, stored and padding.

    Args:
        step: The batch in the step.
        prompts: Prompt tokens of each request.
        policy: Where a row that is done stays, its padding grows behind it.
    """
    width = max((prompts[assignment.number] for assignment in step.assigned), default=0)

    def behind(assignment: Assigned) -> int:
        if not assignment.is_done or policy is Policy.CONTINUOUS:
            return 0
        return max(0, step.columns - (width - prompts[assignment.number]) - assignment.stored)

    return {
        "T": step.event.query_tokens,
        "phase": step.event.phase.value,
        "columns": step.columns,
        "queued": step.queued,
        "strips": _strips(step),
        "rows": [
            [
                assignment.number,
                assignment.kind,
                assignment.fed,
                assignment.stored,
                int(assignment.is_done),
                behind(assignment),
            ]
            for assignment in step.assigned
        ],
    }


def _strips(step: SlotStep) -> list[list[int]]:
    """Return each request that has begun, with what the step fed it and what it has stored."""
    fed = {assignment.number: assignment.fed for assignment in step.assigned}
    return [[number, fed.get(number, 0), stored] for number, stored in step.stored]


def shared_and_own(step: SlotStep, info: RunInfo) -> Frame:
    """Return the bytes of one step: weights once, K/V of each row, and work per weight byte."""
    shape, stored_shape = info.shape, as_stored(info.shape, info.cache)
    own = [
        [assignment.number, mebibytes(kv_stored_bytes(stored_shape, assignment.stored))]
        for assignment in step.assigned
        if assignment.fed
    ]
    if not shape.matrices:
        return {"weights_mib": mebibytes(shape.weight_bytes), "own": own, "flops_per_byte": DASH}
    cost = cost_of(step.event, shape)
    return {
        "weights_mib": mebibytes(cost.weight_bytes),
        "own": own,
        "flops_per_byte": significant(cost.linear_flops / cost.weight_bytes),
    }


def rates(latency: RunningLatency) -> Frame:
    """Return tokens per second of one row and of all rows, both over the same decode steps."""
    return {
        "each": significant(latency.row_tokens_per_s()),
        "all": significant(latency.batch_tokens_per_s()),
    }


def latency_table(
    requests: Sequence[Request], summaries: Sequence[LatencySummary]
) -> list[list[str]]:
    """Return a line of text cells per request: when it arrived, its wait and its latencies."""
    arrivals = {request.request_id: request.arrival_s for request in requests}
    return [
        _latency_line(number, arrivals[summary.request_id], summary)
        for number, summary in enumerate(summaries, start=1)
    ]


LATENCY_COLUMNS = (
    "request",
    "arrives",
    "waits",
    "TTFT",
    "ITL median",
    "ITL p95",
    "tokens",
    "interrupted",
)


def _latency_line(number: int, arrival_s: float, summary: LatencySummary) -> list[str]:
    interruptions = len(summary.interrupted)
    return [
        str(number),
        amount(arrival_s, "s"),
        amount(summary.wait_s, "s"),
        amount(summary.ttft_s, "s"),
        amount(milliseconds(summary.itl_p50_s), "ms"),
        amount(milliseconds(summary.itl_p95_s), "ms"),
        f"{summary.output_tokens:,}",
        f"{interruptions}\u00d7" if interruptions else DASH,
    ]
