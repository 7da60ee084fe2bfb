"""What a frame says of a batch: who sits where, what is shared, and each request's latency.

Only runs of several requests have it. No torch, no page.
"""

from __future__ import annotations

from dataclasses import replace

from inference.metrics import latency_summaries
from inference.records import RunTrace
from visuals.live.frame_tokens import Drawn, Frame
from visuals.live.tables import replaced
from visuals.shares import LATENCY_COLUMNS, latency_table, rates, shared_and_own, step_picture
from visuals.slots import slot_steps, span_rows

MAX_SPANS = 220  # the newest; a frame has room for no more


def batch_parts(drawn: Drawn) -> tuple[Frame, Frame]:
    """Return the batch after the frame's steps, and the table of what every slot did.

    Both are empty for a run of one request.
    """
    trace = drawn.trace
    if not _is_batch(trace) or not drawn.fresh:
        return {}, {}
    upto = trace if drawn.done == len(trace.events) else replace(trace, events=drawn.events)
    steps = list(slot_steps(upto))
    prompts = [len(one.prompt_ids) for one in trace.requests]
    summaries = latency_summaries(upto)
    batch: Frame = {
        "step": step_picture(steps[-1], prompts, trace.info.plan.policy),
        "shared": shared_and_own(steps[-1], trace.info.shape),
        "rates": rates(upto, summaries),
        "latency": latency_table(upto, summaries),
    }
    return {"batch": batch}, {"slot_spans": replaced(span_rows(steps)[-MAX_SPANS:])}


def batch_plan(trace: RunTrace) -> Frame | None:
    """Return how several requests share the device; None for a single one."""
    if not _is_batch(trace):
        return None
    plan = trace.info.plan
    return {
        "policy": plan.policy.value,
        "slots": plan.slots or len(trace.requests),
        "requests": len(trace.requests),
        "columns": LATENCY_COLUMNS,
    }


def _is_batch(trace: RunTrace) -> bool:
    return len(trace.requests) > 1
