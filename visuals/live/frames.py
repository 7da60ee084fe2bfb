"""What the live panel is sent: one small frame with only what is new since the viewer's cursor.

The cursor counts items seen: first the prompt tokens of all requests, then the steps. A frame
says ``from``, ``to`` and ``total``; where there is more than fits, ``to < total`` and the next
frame goes on from ``to``. Any cursor, 0 included, therefore replays the rest of the run.
A viewer's tally carries the figures of the steps drawn from frame to frame; without it they are
counted anew, and come out the same. No torch, no page.
"""

from __future__ import annotations

from dataclasses import asdict

from inference.figures.rows_in_cache import rows_in_cache
from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.records.steps import Part
from visuals.charts import (
    attention,
    cache_account,
    figures,
    kv_cache,
    latency,
    next_token,
    roofline_rows,
    utilization,
    weight_reuse,
)
from visuals.charts.endings import FINISHES
from visuals.live.frame_batch import batch_parts, batch_plan, first_fed
from visuals.live.frame_rows import chart_rows
from visuals.live.frame_tokens import (
    ITEM_BYTES,
    Drawn,
    Frame,
    fitting_steps,
    needed_pieces,
    prompt_items,
    text_parts,
)
from visuals.live.tables import json_size
from visuals.live.tally import Tally, is_batch

VERSION = 1
MAX_FRAME_BYTES = 64 * 1024


def frame(
    trace: RunTrace | None, status: RunStatus, cursor: int, tally: Tally | None = None
) -> Frame:
    """Return what a viewer who has seen ``cursor`` items draws next, as JSON-able values.

    Args:
        trace: The run so far; None while there is nothing but its status.
        status: Where the run stands.
        cursor: Items that this viewer has drawn; one that is too large counts as all.
        tally: What this viewer's frames have in common; None for a frame by itself.
    """
    if trace is None:
        return {"v": VERSION, "run": _run(status), "from": 0, "to": 0, "total": 0}
    prompt_total = sum(len(request.prompt_ids) for request in trace.requests)
    total = prompt_total + len(trace.events)
    start = min(max(cursor, 0), total)
    begin = max(start - prompt_total, 0)
    pieces = needed_pieces(trace, start, begin)
    prompt = prompt_items(trace, start, pieces)
    is_prompt_done = start + len(prompt) >= prompt_total
    room = ITEM_BYTES - json_size(prompt)
    fitting = fitting_steps(trace, begin, room, pieces) if is_prompt_done else []
    steps = len(fitting)
    outputs = [item for items in fitting for item in items]
    drawn = Drawn(trace=trace, begin=begin, done=begin + steps, pieces=pieces, outputs=outputs)
    tally = tally or Tally()
    tally.take(trace, drawn.done)
    batch, slot_tables = batch_parts(drawn, tally)
    body: Frame = {
        "v": VERSION,
        "run": _run(status) | {"ended": finish_words(trace), "warning": _warning(trace)},
        "from": start,
        "to": start + len(prompt) + steps,
        "total": total,
        "prompt": prompt,
        "rows": chart_rows(drawn) | slot_tables,
        "readings": utilization.newest_readings(trace.telemetry),
        "unavailable": utilization.remarks(trace) if start == 0 or status.state.is_final else None,
        "text": text_parts(drawn, is_final=status.state.is_final),
    }
    if start == 0:
        body["model"] = _model(trace)
    if start == 0 or steps:
        body |= _step_parts(drawn, tally)
    body |= batch
    if weight_reuse.is_changed(trace.events[:begin], drawn.events):
        body["weights"] = weight_reuse.reuse_items(drawn.events, trace.info.shape)
    return body


def _warning(trace: RunTrace) -> str:
    """Return what the self-check found to differ, and what is to be known of the prompts' text."""
    notes = (trace.info.check_warning, *(request.text_note for request in trace.requests))
    return " ".join(dict.fromkeys(note for note in notes if note))


def finish_words(trace: RunTrace) -> str:
    """Return why a run that finished did, where all its rows ended alike; empty otherwise."""
    if trace.state is not RunState.DONE:
        return ""
    ends = {row.finish for event in trace.events for row in event.rows if row.finish is not None}
    return FINISHES[ends.pop()] if len(ends) == 1 else ""


def _run(status: RunStatus) -> Frame:
    """Return the run's state for its header."""
    return {
        "state": status.state.value,
        "final": status.state.is_final,
        "message": status.message,
        "stage": status.stage,
        "stage_ratio": status.stage_ratio,
        "queue_position": status.queue_position,
        "held": status.is_held,
    }


def _model(trace: RunTrace) -> Frame:
    """Return what the run is made with."""
    info = trace.info
    return {
        "id": info.model_id,
        "dtype": info.device.dtype,
        "device": info.device.name,
        "kind": info.device.kind,
        "started_at": info.started_at.isoformat(),
        "layers": info.shape.num_hidden_layers,
        "attention": attention.layer_items(info.shape),
        "captured": bool(trace.attention),
        "matrices": weight_reuse.matrix_items(info.shape),
        "roofs": roofline_rows.roofs_version(info),
        "batch": batch_plan(trace),
        "first_fed": first_fed(trace),
        "requests": [
            {
                "id": request.request_id,
                "prompt_tokens": len(request.prompt_ids),
                "max_new_tokens": request.max_new_tokens,
            }
            for request in trace.requests
        ],
    }


def _step_parts(drawn: Drawn, tally: Tally) -> Frame:
    """Return what the new steps add, with captions and figures as of the newest of them."""
    trace, events = drawn.trace, drawn.events
    shape = trace.info.shape
    ids = [request.request_id for request in trace.requests]
    first = ids[0] if ids else ""
    return {
        "outputs": drawn.outputs,
        "mask": attention.mask_steps(drawn.fresh, first),
        "masks": attention.mask_rows(drawn.fresh, ids) if len(ids) > 1 else [],
        "step": _step(drawn),
        "captions": {
            "latency": latency.caption(events, trace.info),
            "kv": kv_cache.caption(events, trace.info),
            "weights": weight_reuse.caption(events, shape),
        },
        "roofline": {
            "captions": {
                part.value: roofline_rows.caption(events, trace.info, part) for part in Part
            },
            "alarms": roofline_rows.alarms(drawn.fresh, trace.info),
        },
        "mask_words": attention.kind_words(events, shape, first if len(ids) > 1 else None),
        "capture": attention.capture_cost(events),
        "account": cache_account.account(events, trace.info),
        "next": _next_token(drawn, first),
        "figures": _figures(drawn, tally, first),
    }


def _next_token(drawn: Drawn, request_id: str) -> Frame | None:
    """Return how the first request's newest token of this frame was chosen."""
    for event in reversed(drawn.fresh):
        for row in event.rows:
            if row.request_id == request_id:
                sampling = drawn.trace.requests[0].sampling
                return next_token.next_token_item(event, sampling, row, drawn.pieces)
    return None


def _figures(drawn: Drawn, tally: Tally, request_id: str) -> list[Frame]:
    """Return the headline figures; of several requests they are the first one's, and say so."""
    if not request_id:
        return []
    summary = tally.latency.summary(request_id)
    made = [asdict(figure) for figure in figures.figures_of(drawn.events, summary)]
    for figure in made if is_batch(drawn.trace) else ():
        figure["note"] = ", ".join(filter(None, ("request 1", str(figure["note"]))))
    return made


def _step(drawn: Drawn) -> Frame | None:
    """Return the newest step of this frame, or None before the first."""
    if not drawn.events:
        return None
    event = drawn.events[-1]
    most = max(request.max_new_tokens for request in drawn.trace.requests)
    held = rows_in_cache(drawn.events)
    stored = sum(row.context_tokens for row in held)
    return {
        "index": event.index,
        "phase": event.phase.value,
        "decode": drawn.decode_steps,
        "decode_most": max(most - 1, 0) if len(drawn.trace.requests) == 1 else 0,
        "T": event.query_tokens,
        "L": sum(row.context_tokens for row in event.rows),
        "stored": stored,
        "known": stored + sum(row.token_id is not None for row in held),
        "lap_ms": latency.milliseconds(event.duration_s),
        "cold": event.cold,
        "observed": event.observed,
    }
