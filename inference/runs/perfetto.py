"""A run's timeline as a trace that ui.perfetto.dev and chrome://tracing open. No torch.

Times are host times on the run's zero, in microseconds: spans are steps, counters are telemetry and
the cache.

Source:
    The Trace Event Format, Google 2016: complete events ``X``, counters ``C``, metadata ``M``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields

from inference.records.run import RunTrace
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample

PROCESS = 1
STEP_TRACK = 1
ROW_TRACK = 2  # the first request's; one track for each request
NOT_COUNTERS = frozenset({"at_s", "throttle_reasons"})


def perfetto_json(trace: RunTrace) -> str:
    """Return the trace file of a run."""
    info = trace.info
    events = [*_names(trace), *_steps(trace), *_counters(trace)]
    about = {
        "run_id": info.run_id,
        "model": info.model_id,
        "device": info.device.name,
        "dtype": info.device.dtype,
        "started_at": info.started_at.isoformat(),
        "clock": info.clock,
        **{f"version of {name}": number for name, number in info.versions},
    }
    file = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(file, allow_nan=False)


def _names(trace: RunTrace) -> Iterator[dict[str, object]]:
    """Yield the names of the process and of its tracks."""
    title = f"{trace.info.model_id} on {trace.info.device.name}"
    yield _metadata("process_name", STEP_TRACK, title)
    yield _metadata("thread_name", STEP_TRACK, "steps")
    for index, request in enumerate(trace.requests):
        yield _metadata("thread_name", ROW_TRACK + index, f"request {request.request_id}")


def _metadata(kind: str, track: int, name: str) -> dict[str, object]:
    return {"ph": "M", "pid": PROCESS, "tid": track, "name": kind, "args": {"name": name}}


def _steps(trace: RunTrace) -> Iterator[dict[str, object]]:
    """Yield a span for each step, and one for each of its rows on the request's own track."""
    texts = {piece.token_id: piece.raw.decode("utf-8", "replace") for piece in trace.pieces}
    track = {one.request_id: ROW_TRACK + index for index, one in enumerate(trace.requests)}
    for event in trace.events:
        yield _span(
            event,
            STEP_TRACK,
            event.phase.value,
            {
                "step": event.index,
                "query_tokens": event.query_tokens,
                "context_tokens": event.context_tokens,
                "cold": event.cold,
                "observed": event.observed,
                "run_delay_s": event.run_delay_s,
            },
        )
        for row in event.rows:
            token = None if row.token_id is None else texts.get(row.token_id, "")
            args = {
                "query_tokens": row.query_tokens,
                "context_tokens": row.context_tokens,
                "token_id": row.token_id,
                "token": token,
                "finish": None if row.finish is None else row.finish.value,
            }
            yield _span(event, track[row.request_id], token or event.phase.value, args)


def _span(event: StepEvent, track: int, name: str, args: Mapping[str, object]) -> dict[str, object]:
    return {
        "ph": "X",
        "pid": PROCESS,
        "tid": track,
        "name": name,
        "cat": event.phase.value,
        "ts": _microseconds(event.started_s),
        "dur": _microseconds(event.duration_s),
        "args": {key: value for key, value in args.items() if value is not None},
    }


def _counters(trace: RunTrace) -> Iterator[dict[str, object]]:
    """Yield the cache after each step, and every reading that the machine gave."""
    for event in trace.events:
        over_s = event.started_s + event.duration_s
        yield _counter("kv_used_bytes", over_s, event.cache.used_bytes)
    names = [field.name for field in fields(TelemetrySample) if field.name not in NOT_COUNTERS]
    for sample in trace.telemetry:
        for name in names:
            value = getattr(sample, name)
            if value is not None:
                yield _counter(name, sample.at_s, value)


def _counter(name: str, at_s: float, value: float) -> dict[str, object]:
    at = _microseconds(at_s)
    return {"ph": "C", "pid": PROCESS, "name": name, "ts": at, "args": {"value": value}}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
