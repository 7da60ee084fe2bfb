"""Who runs next: which requests share the device, in which slots, under which policy.

A :class:`Scheduler` reads a batch and returns a move; a runner carries it out. Times are on the
run's own time (step times and idle waits). Never sees a tensor. No torch.

Static: the requests that have come in, as many as there are slots, form a batch; its rows stay
until all have ended, and only then does the next batch begin. Continuous: a free slot takes the
next request before the next decode step; its prompt is fed alone, at once or in chunks with a
decode step of the other rows between two chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.counting.costs import kv_stored_bytes
from inference.engine.batch import Assignment, Batch
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.options import BatchPlan, Policy
from inference.records.run import Request
from inference.records.steps import Phase

MAX_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Feed the arriving prompts up to column ``end``.

    Attributes:
        admitted: Requests that arrive with this move; empty for a prompt's further chunks.
    """

    admitted: tuple[Assignment, ...] = ()
    end: int


@dataclass(frozen=True, slots=True)
class Decode:
    """Feed each live row of the batch its newest token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Wait: no request arrives before ``until_s``."""

    until_s: float


Step = Prefill | Decode
Move = Step | Idle


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Chooses the moves of one run.

    Attributes:
        chunk_tokens: Feed prompts in chunks of this many columns; None for all at once.
    """

    plan: BatchPlan
    chunk_tokens: int | None = None

    def __post_init__(self) -> None:
        """Raise InputError unless the plan has between one slot and ``MAX_ROWS``."""
        check_plan(self.plan)

    def next_move(self, batch: Batch, now_s: float) -> Move | None:
        """Return what the run does next; None when every request has ended."""
        # Between two chunks the other rows go first.
        owes_decode = self.chunk_tokens is not None and batch.latest is Phase.PREFILL
        if owes_decode and batch.live:
            return Decode()
        if batch.arriving:
            return Prefill(end=self._end(batch.fed_columns, batch.width))
        if admitted := self._admissible(batch, now_s):
            wanted = {assignment.request for assignment in admitted}
            prompts = (row.prompt_tokens for row in batch.waiting if row.number in wanted)
            return Prefill(admitted=admitted, end=self._end(0, max(prompts)))
        if batch.live:
            return Decode()
        if batch.waiting:
            return Idle(until_s=batch.waiting[0].request.arrival_s)
        return None

    def _end(self, start: int, width: int) -> int:
        return min(width, start + (self.chunk_tokens or width))

    def _admissible(self, batch: Batch, now_s: float) -> tuple[Assignment, ...]:
        """Return the requests whose prompts are fed next with their slots; empty for none."""
        arrived = [row.number for row in batch.waiting if row.request.arrival_s <= now_s]
        taken = {row.slot for row in batch.live}
        if self.plan.policy is Policy.CONTINUOUS:
            arrived = arrived[:1]
        elif taken:
            return ()
        slots = self.plan.slots or len(arrived) + len(taken)
        free = (slot for slot in range(slots) if slot not in taken)
        pairs = zip(arrived, free, strict=False)
        return tuple(Assignment(request=request, slot=slot) for request, slot in pairs)


def check_plan(plan: BatchPlan) -> None:
    """Raise unless the plan has between one slot and ``MAX_ROWS``.

    Raises:
        InputError: There are none, or too many.
    """
    if plan.slots is not None and not 1 <= plan.slots <= MAX_ROWS:
        msg = f"a batch cannot have {plan.slots} slots; give 1 to {MAX_ROWS}"
        raise InputError(msg)


def check_arrivals(arrivals_s: Sequence[float]) -> None:
    """Raise unless every request arrives at or after the beginning of the run.

    Raises:
        InputError: One arrives before it, or never.
    """
    for number, arrival_s in enumerate(arrivals_s, start=1):
        if not 0 <= arrival_s < float("inf"):
            msg = f"request {number} arrives at {arrival_s:g} s; the run begins at 0 s, so give a "
            msg += "finite number from 0 on"
            raise InputError(msg)


def largest_contexts(
    requests: Sequence[Request], plan: BatchPlan, context_limit: int | None
) -> list[int]:
    """Return the tokens stored in the end by the largest rows that can run together, by size.

    The last token of a row is selected and not stored.

    Args:
        requests: Those of the run.
        plan: Says how many rows may run together.
        context_limit: Tokens the model takes; None where it names no limit.
    """
    most = [len(request.prompt_ids) + request.max_new_tokens - 1 for request in requests]
    contexts = [tokens if context_limit is None else min(tokens, context_limit) for tokens in most]
    return sorted(contexts, reverse=True)[: plan.slots or len(contexts)]


def rows_that_fit(shape: ModelShape, contexts: Sequence[int], free_bytes: int) -> int:
    """Return how many of the rows, taken in order, have room for all their K/V.

    Args:
        shape: The model's sizes; its weights are in memory already.
        contexts: Tokens each row holds in the end; rows are padded to the longest.
        free_bytes: Memory left for K/V.
    """
    for rows in range(len(contexts), 0, -1):
        if rows * kv_stored_bytes(shape, max(contexts[:rows])) <= free_bytes:
            return rows
    return 0


def check_rows_fit(shape: ModelShape, contexts: Sequence[int], free_bytes: int | None) -> None:
    """Raise unless the rows' K/V fits into the free memory, or that is unknown.

    Raises:
        InputError: It does not fit; the sentence says how many rows do.
    """
    fitting = len(contexts) if free_bytes is None else rows_that_fit(shape, contexts, free_bytes)
    if fitting == len(contexts) or free_bytes is None:
        return
    needed = len(contexts) * kv_stored_bytes(shape, max(contexts))
    msg = (
        f"{len(contexts)} rows of up to {max(contexts):,} tokens need {needed / 2**30:.2f} GiB of "
        f"keys and values and {free_bytes / 2**30:.2f} GiB are free: {fitting} of them fit; "
        "nothing was run, so use fewer slots, or shorter prompts and answers"
    )
    raise InputError(msg)
