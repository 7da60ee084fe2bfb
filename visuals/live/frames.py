"""What the live panel is sent: one small frame with only what is new since the viewer's cursor.

The cursor counts items seen: first the prompt tokens of all requests, then the steps. A frame
says ``from``, ``to`` and ``total``; where there is more than fits, ``to < total`` and the next
frame goes on from ``to``. Any cursor, 0 included, therefore replays the rest of the run.
Pure: nothing is kept between calls. No torch, no page.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from inference.records import RunStatus, RunTrace
from visuals import attention, figures, kv_cache, latency, utilization
from visuals.live.frame_rows import chart_rows
from visuals.live.frame_tokens import (
    ITEM_BYTES,
    Drawn,
    Frame,
    fitting_steps,
    needed_pieces,
    output_items,
    prompt_items,
    text_parts,
)
from visuals.live.tables import json_size

VERSION = 1
MAX_FRAME_BYTES = 64 * 1024


def frame(trace: RunTrace | None, status: RunStatus, cursor: int) -> Frame:
    """Return what a viewer who has seen ``cursor`` items draws next, as JSON-able values.

    Args:
        trace: The run so far; None while there is nothing but its status.
        status: Where the run stands.
        cursor: Items that this viewer has drawn; one that is too large counts as all.
    """
    if trace is None:
        return {"v": VERSION, "run": _run(status), "from": 0, "to": 0, "total": 0}
    prompt_total = sum(len(request.prompt_ids) for request in trace.requests)
    total = prompt_total + len(trace.events)
    start = min(max(cursor, 0), total)
    seen = max(start - prompt_total, 0)
    pieces = needed_pieces(trace, start, seen)
    prompt = prompt_items(trace, start, pieces)
    is_prompt_done = start + len(prompt) >= prompt_total
    room = ITEM_BYTES - json_size(prompt)
    steps = fitting_steps(trace, seen, room, pieces) if is_prompt_done else 0
    drawn = Drawn(trace=trace, seen=seen, done=seen + steps, pieces=pieces)
    body: Frame = {
        "v": VERSION,
        "run": _run(status),
        "from": start,
        "to": start + len(prompt) + steps,
        "total": total,
        "prompt": prompt,
        "rows": chart_rows(drawn),
        "readings": utilization.newest_readings(trace.telemetry),
        "text": text_parts(drawn, is_final=status.state.is_final),
    }
    if start == 0:
        body["model"] = _model(trace)
    if start == 0 or steps:
        body |= _step_parts(drawn)
    return body


def _run(status: RunStatus) -> Frame:
    """Return the run's state for its header."""
    return {
        "state": status.state.value,
        "final": status.state.is_final,
        "message": status.message,
        "stage": status.stage,
        "stage_ratio": status.stage_ratio,
        "queue_position": status.queue_position,
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
        "window": attention.mask_window(info.shape),
        "unavailable": utilization.missing(trace),
        "requests": [
            {
                "id": request.request_id,
                "prompt_tokens": len(request.prompt_ids),
                "max_new_tokens": request.max_new_tokens,
            }
            for request in trace.requests
        ],
    }


def _step_parts(drawn: Drawn) -> Frame:
    """Return what the new steps add, with captions and figures as of the newest of them."""
    trace, events = drawn.trace, drawn.events
    shape = trace.info.shape
    first = trace.requests[0].request_id if trace.requests else ""
    upto = trace if len(events) == len(trace.events) else replace(trace, events=events)
    return {
        "outputs": output_items(drawn),
        "mask": attention.mask_steps(drawn.fresh, first),
        "step": _step(drawn),
        "captions": {
            "mask": attention.caption(events, shape),
            "latency": latency.caption(events),
            "kv": kv_cache.caption(events, shape),
        },
        "descriptions": {"mask": attention.description(events, shape)},
        "figures": [asdict(figure) for figure in figures.headline(upto, first)] if first else [],
    }


def _step(drawn: Drawn) -> Frame | None:
    """Return the newest step of this frame, or None before the first."""
    if not drawn.events:
        return None
    event = drawn.events[-1]
    most = max(request.max_new_tokens for request in drawn.trace.requests)
    stored = sum(row.context_tokens for row in event.rows)
    return {
        "index": event.index,
        "phase": event.phase.value,
        "decode": drawn.decode_steps,
        "decode_most": max(most - 1, 0),
        "T": event.query_tokens,
        "L": event.context_tokens,
        "stored": stored,
        "known": stored + sum(row.token_id is not None for row in event.rows),
        "lap_ms": latency.milliseconds(event.duration_s),
        "cold": event.cold,
        "observed": event.observed,
    }
