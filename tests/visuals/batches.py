"""Runs of several requests, played by the schedule itself, for tests of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inference.engine.batch import Batch, BatchRow, TokenBlock, decode_block
from inference.engine.scheduler import Decode, Idle, Prefill, Scheduler
from inference.records.model import TokenPiece
from inference.records.options import BatchPlan, Policy, Sampling
from inference.records.run import Request, RunTrace
from inference.records.steps import CacheState, Finish, Phase, RowStep, StepEvent
from tests.builders import run_info

STEP_TIME_S = 0.5


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
    batch, scheduler = Batch(requests), Scheduler(plan, chunk_tokens)
    events: list[StepEvent] = []
    now_s = waited_s = 0.0
    while (move := scheduler.next_move(batch, now_s)) is not None:
        if isinstance(move, Idle):
            waited_s, now_s = move.until_s - now_s, move.until_s
            continue
        block = _block(batch, move, plan)
        rows = [_row(row, block.lengths[at], selects=block.selects) for at, row in block.fed]
        batch.advance(block)
        events.append(_event(len(events), block.phase, rows, now_s=now_s, waited_s=waited_s))
        now_s, waited_s = now_s + STEP_TIME_S, 0.0
    return tuple(events)


def _block(batch: Batch, move: Prefill | Decode, plan: BatchPlan) -> TokenBlock:
    if plan.policy is Policy.CONTINUOUS or not batch.live:
        batch.retire()
    if isinstance(move, Decode):
        return decode_block(batch.rows)
    if move.admitted:
        batch.admit(move.admitted)
    return batch.prompt_block(move.end)


def _row(row: BatchRow, fed: int, *, selects: bool) -> RowStep:
    step = row.fed(fed)
    if not selects:
        return step
    row.token_ids.append(1)
    is_last = len(row.token_ids) == row.request.max_new_tokens
    row.finish = Finish.LENGTH if is_last else None
    return replace(step, token_id=1, logprob=-0.5, finish=row.finish)


def _event(
    index: int, phase: Phase, rows: list[RowStep], *, now_s: float, waited_s: float
) -> StepEvent:
    held = 64 * sum(row.context_tokens for row in rows)
    return StepEvent(
        index=index,
        phase=phase,
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
