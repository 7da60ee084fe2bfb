"""Whole runs built from the bytes of their tokens, for tests of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inference.records.model import TokenPiece
from inference.records.options import Sampling
from inference.records.run import Request, RunTrace
from inference.records.status import RunState, RunStatus
from inference.records.steps import CacheState, Candidate, Phase, RowStep, StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable
from tests.builders import KV_BYTES_PER_TOKEN, LAYERS, run_info

RUNNING = RunStatus(state=RunState.RUNNING)
DONE = RunStatus(state=RunState.DONE)
SPECIAL = b"<|end|>"
NO_GPU = Unavailable(reading="gpu_busy_ratio", reason="this machine has no NVIDIA driver")


def trace_of(
    prompt: Sequence[bytes],
    outputs: Sequence[bytes],
    *,
    step_time_s: float = 0.05,
    spare_bytes: int = 0,
) -> RunTrace:
    """Return a run of one request; the first two steps are cold, as after loading a model."""
    ids = {raw: number for number, raw in enumerate(dict.fromkeys([*prompt, *outputs]))}
    events = tuple(
        _event(index, len(prompt), ids[raw], step_time_s=step_time_s, spare_bytes=spare_bytes)
        for index, raw in enumerate(outputs)
    )
    request = Request(
        request_id="r0",
        prompt_text=b"".join(prompt).decode(errors="replace"),
        prompt_ids=tuple(ids[raw] for raw in prompt),
        max_new_tokens=max(len(outputs), 1),
        sampling=Sampling(),
    )
    return RunTrace(
        info=run_info(),
        requests=(request,),
        events=events,
        telemetry=tuple(_sample(number * 0.5) for number in range(len(outputs))),
        outputs=(),
        pieces=tuple(
            TokenPiece(token_id=number, raw=raw, is_special=raw == SPECIAL)
            for raw, number in ids.items()
        ),
        unavailable=(NO_GPU,),
    )


def empty_trace() -> RunTrace:
    """Return a run that was taken up and has fed nothing yet."""
    return trace_of([b"a", b"b"], [])


def _event(
    index: int, prompt_tokens: int, token_id: int, *, step_time_s: float, spare_bytes: int
) -> StepEvent:
    """Return one step of the run."""
    context = prompt_tokens + index
    used = context * KV_BYTES_PER_TOKEN
    likely = tuple(
        Candidate(token_id=max(token_id - position, 0), logprob=-0.5 - position)
        for position in range(5)
    )
    row = RowStep(
        request_id="r0",
        slot=0,
        query_tokens=prompt_tokens if index == 0 else 1,
        context_tokens=context,
        token_id=token_id,
        logprob=-0.5,
        finish=None,
        candidates=likely,
    )
    half = (used + spare_bytes) // 2
    return StepEvent(
        index=index,
        phase=Phase.PREFILL if index == 0 else Phase.DECODE,
        rows=(row,),
        cache=CacheState(
            tokens_per_layer=(context,) * LAYERS,
            used_bytes=used,
            allocated_bytes=used + spare_bytes,
            bytes_per_layer=(half, used + spare_bytes - half),
        ),
        started_s=index * 0.5,
        duration_s=step_time_s,
        observed=False,
        cold=index < 2,
    )


def _sample(at_s: float) -> TelemetrySample:
    """Return a reading of a machine without a GPU."""
    return TelemetrySample(
        at_s=at_s,
        cpu_busy_ratio=0.5,
        process_cpu_ratio=0.4,
        memory_used_bytes=2**30,
        memory_total_bytes=2**32,
    )


def batch_of(trace: RunTrace, rows: int) -> RunTrace:
    """Return the run with so many copies of its one request in every step."""
    ids = [f"r{row}" for row in range(rows)]
    requests = tuple(replace(trace.requests[0], request_id=one) for one in ids)
    events = tuple(
        replace(
            event,
            rows=tuple(replace(event.rows[0], request_id=one) for one in ids),
            cache=_copied(event.cache, rows),
        )
        for event in trace.events
    )
    return replace(trace, requests=requests, events=events)


def _copied(cache: CacheState, rows: int) -> CacheState:
    return replace(
        cache,
        used_bytes=cache.used_bytes * rows,
        allocated_bytes=cache.allocated_bytes * rows,
        bytes_per_layer=tuple(size * rows for size in cache.bytes_per_layer),
    )
