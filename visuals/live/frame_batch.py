"""What a frame says of a batch: who sits where, what is shared, and each request's latency.

Only runs of several requests have it. No torch, no page.
"""

from __future__ import annotations

from dataclasses import replace

from inference.records import RunTrace
from visuals.live.frame_tokens import Drawn, Frame
from visuals.live.tables import replaced
from visuals.shares import LATENCY_COLUMNS, latency_table, rates, shared_and_own, step_picture
from visuals.slots import slot_steps, span_rows

MAX_SPANS = 220  # the newest; a frame has room for no more


def batch_parts(drawn: Drawn) -> Frame:
    """Return the batch after the frame's steps; empty for a run of one request."""
    trace = drawn.trace
    if not _is_batch(trace) or not drawn.fresh:
        return {}
    upto = trace if drawn.done == len(trace.events) else replace(trace, events=drawn.events)
    *_, newest = slot_steps(upto)
    prompts = [len(one.prompt_ids) for one in trace.requests]
    return {
        "batch": {
            "step": step_picture(newest, prompts, trace.info.plan.policy),
            "shared": shared_and_own(newest, trace.info.shape),
            "rates": rates(upto),
            "latency": latency_table(upto),
        }
    }


def slot_tables(drawn: Drawn) -> Frame:
    """Return what every slot did, over the run's time; empty for a run of one request."""
    if not _is_batch(drawn.trace) or not drawn.fresh:
        return {}
    upto = replace(drawn.trace, events=drawn.events)
    return {"slot_spans": replaced(span_rows(list(slot_steps(upto)))[-MAX_SPANS:])}


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
