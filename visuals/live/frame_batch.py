"""What a frame says of a batch: who sits where, what is shared, and each request's latency.

Only runs of several requests have it. No torch, no page.
"""

from __future__ import annotations

from inference.records.options import Policy
from inference.records.run import RunTrace
from visuals.charts.batch_bytes import (
    LATENCY_COLUMNS,
    latency_table,
    rates,
    shared_and_own,
    step_picture,
)
from visuals.live.frame_tokens import Drawn, Frame
from visuals.live.tables import replaced
from visuals.live.tally import Tally, is_batch

MAX_SPANS = 220  # the newest; a frame has room for no more


def batch_parts(drawn: Drawn, tally: Tally) -> tuple[Frame, Frame]:
    """Return the batch after the frame's steps, and the table of what every slot did.

    Both are empty for a run of one request, and where the frame has no step.
    """
    trace, newest = drawn.trace, tally.newest
    if newest is None or not drawn.fresh:
        return {}, {}
    prompts = [len(one.prompt_ids) for one in trace.requests]
    summaries = tally.latency.summaries()
    batch: Frame = {
        "step": step_picture(newest, prompts, trace.info.plan.policy),
        "shared": shared_and_own(newest, trace.info),
        "rates": rates(tally.latency),
        "latency": latency_table(trace.requests, summaries),
    }
    return {"batch": batch}, {"slot_spans": replaced(tally.spans.rows[-MAX_SPANS:])}


def first_fed(trace: RunTrace) -> list[list[int]]:
    """Return the requests that the run's first step feeds, by their index, each with its tokens.

    The first to arrive begin, as the scheduler admits them; of a prompt in chunks one is fed.
    """
    plan, chunk = trace.info.plan, trace.info.chunk_tokens
    begins_s = min((one.arrival_s for one in trace.requests), default=0.0)
    there = [at for at, one in enumerate(trace.requests) if one.arrival_s <= begins_s]
    most = 1 if plan.policy is Policy.CONTINUOUS else plan.slots or len(there)
    lengths = {at: len(trace.requests[at].prompt_ids) for at in there[:most]}
    width = max(lengths.values(), default=0)
    columns = min(width, chunk or width)  # shorter prompts are padded on the left
    return [[at, max(0, columns - (width - length))] for at, length in lengths.items()]


def batch_plan(trace: RunTrace) -> Frame | None:
    """Return how several requests share the device; None for a single one."""
    if not is_batch(trace):
        return None
    plan = trace.info.plan
    # A static batch takes whoever is there when the one before it ends, which nobody knows yet.
    is_known = plan.policy is Policy.CONTINUOUS or len({r.arrival_s for r in trace.requests}) == 1
    return {
        "policy": plan.policy.value,
        "slots": plan.slots or (len(trace.requests) if is_known else None),
        "requests": len(trace.requests),
        "columns": LATENCY_COLUMNS,
    }
