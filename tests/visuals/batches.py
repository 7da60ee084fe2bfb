"""Runs of several requests, played by the schedule itself, for tests of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference.engine.scheduler import Decode, Idle, Move, Prefill, after, new_schedule, next_move
from inference.records.model import TokenPiece
from inference.records.options import BatchPlan, Sampling
from inference.records.run import Request, RunTrace
from inference.records.steps import CacheState, Finish, Phase, RowStep, StepEvent
from tests.builders import run_info

STEP_TIME_S = 0.5


@dataclass(slots=True)
class _Counts:
    """Tokens selected and stored of each request so far."""

    made: list[int]
    stored: list[int]


def batch_trace(
    plan: BatchPlan,
    prompts: Sequence[int] = (6, 2, 4),
    new_tokens: Sequence[int] = (3, 6, 2),
    *,
    gap_s: float = 0.0,
    chunk_tokens: int | None = None,
) -> RunTrace:
    """Return a finished run under this plan; every timing takes half a second."""
    requests = tuple(
        Request(
            request_id=f"r{number}",
            prompt_text="",
            prompt_ids=(1,) * length,
            max_new_tokens=new,
            sampling=Sampling(),
            arrival_s=number * gap_s,
        )
        for number, (length, new) in enumerate(zip(prompts, new_tokens, strict=True))
    )
    return RunTrace(
        info=replace(run_info(), plan=plan, chunk_tokens=chunk_tokens),
        requests=requests,
        events=_events(requests, plan, chunk_tokens),
        telemetry=(),
        outputs=(),
        pieces=(TokenPiece(token_id=1, raw=b" one"),),
    )


def _events(
    requests: Sequence[Request], plan: BatchPlan, chunk_tokens: int | None
) -> tuple[StepEvent, ...]:
    schedule = new_schedule(requests, plan, chunk_tokens)
    events: list[StepEvent] = []
    counts = _Counts(made=[0] * len(requests), stored=[0] * len(requests))
    now_s = waited_s = 0.0
    while (move := next_move(schedule, now_s)) is not None:
        if isinstance(move, Idle):
            waited_s, now_s = move.until_s - now_s, move.until_s
            continue
        rows = [
            _row(requests[number], slot, fed, counts, selects=_selects(move))
            for number, slot, fed in _fed(move, requests)
        ]
        done = [int(row.request_id[1:]) for row in rows if row.finish is not None]
        schedule = after(schedule, move, done)
        events.append(_event(len(events), move, rows, now_s=now_s, waited_s=waited_s))
        now_s, waited_s = now_s + STEP_TIME_S, 0.0
    return tuple(events)


def _selects(move: Move) -> bool:
    return not isinstance(move, Prefill) or move.is_last


def _fed(move: Prefill | Decode, requests: Sequence[Request]) -> list[tuple[int, int, int]]:
    """Return request, slot and tokens of each row that is fed something real."""
    if isinstance(move, Decode):
        pairs = zip(move.assignments, move.is_live, strict=True)
        return [(assignment.request, assignment.slot, 1) for assignment, lives in pairs if lives]
    fed: list[tuple[int, int, int]] = []
    for assignment in move.assignments:
        gap = move.width - len(requests[assignment.request].prompt_ids)
        tokens = max(0, move.end - max(move.start, gap))
        if tokens:
            fed.append((assignment.request, assignment.slot, tokens))
    return fed


def _row(request: Request, slot: int, fed: int, counts: _Counts, *, selects: bool) -> RowStep:
    number = int(request.request_id[1:])
    counts.stored[number] += fed
    counts.made[number] += selects
    is_last = counts.made[number] == request.max_new_tokens
    return RowStep(
        request_id=request.request_id,
        slot=slot,
        query_tokens=fed,
        context_tokens=counts.stored[number],
        token_id=1 if selects else None,
        logprob=-0.5 if selects else None,
        finish=Finish.LENGTH if is_last else None,
    )


def _event(
    index: int, move: Move, rows: list[RowStep], *, now_s: float, waited_s: float
) -> StepEvent:
    held = 64 * sum(row.context_tokens for row in rows)
    return StepEvent(
        index=index,
        phase=Phase.PREFILL if isinstance(move, Prefill) else Phase.DECODE,
        rows=tuple(rows),
        cache=CacheState(
            tokens_per_layer=(max(row.context_tokens for row in rows),) * 2,
            used_bytes=held,
            allocated_bytes=held,
            bytes_per_layer=(held // 2,) * 2,
        ),
        started_s=now_s,
        duration_s=STEP_TIME_S,
        observed=False,
        cold=False,
        waited_s=waited_s,
    )
