"""Who runs next: which requests share the device, in which slots, under which policy.

A :class:`Schedule` is a value; ``next_move`` reads it and ``after`` returns the one that follows.
Times are on the run's own time (step times and idle waits). Never sees a tensor. No torch.

Static: the requests that have come in, as many as there are slots, form a batch; its rows stay
until all are done, and only then does the next batch begin. Continuous: a free slot takes the next
request before the next decode step; its prompt is fed alone, at once or in chunks with a decode
step of the other rows between two chunks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from inference.counting.costs import kv_stored_bytes
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.options import BatchPlan, Policy
from inference.records.run import Request

MAX_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A request, by its place in the run's list, and the slot it has."""

    request: int
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Feed columns ``start`` to ``end`` of these seats' prompts, padded to ``width`` columns."""

    assignments: tuple[Assignment, ...]
    start: int
    end: int
    width: int

    @property
    def is_last(self) -> bool:
        """True when the prompts are fed whole with it, so that tokens are selected."""
        return self.end == self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Feed each row its newest token.

    Attributes:
        seats: Rows of the batch, in the cache's order; a static batch keeps those that are done.
        is_live: One per seat: False for a row that is done and is fed padding.
    """

    assignments: tuple[Assignment, ...]
    is_live: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Wait: nobody is there to be served before ``until_s``."""

    until_s: float


Move = Prefill | Decode | Idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Where a run stands.

    Attributes:
        queue: Requests without a slot, in the order of their arrival.
        seats: Rows whose prompt is fed, in the cache's order.
        done: Requests that have their last token.
        prefill: The chunk fed last of a prompt with more to come; None between prompts.
        owes_decode: A chunk was the last step, so the other rows go before the next one.
    """

    plan: BatchPlan
    chunk_tokens: int | None
    arrivals_s: tuple[float, ...]
    prompt_tokens: tuple[int, ...]
    queue: tuple[int, ...]
    assignments: tuple[Assignment, ...] = ()
    done: frozenset[int] = frozenset()
    prefill: Prefill | None = None
    owes_decode: bool = False

    @property
    def slots(self) -> int:
        """Rows that may run together."""
        return self.plan.slots or len(self.arrivals_s)

    @property
    def live(self) -> tuple[Assignment, ...]:
        """Rows that have tokens to come."""
        return tuple(
            assignment for assignment in self.assignments if assignment.request not in self.done
        )


def new_schedule(
    requests: Sequence[Request], plan: BatchPlan, chunk_tokens: int | None = None
) -> Schedule:
    """Return the schedule of a run that begins.

    Raises:
        InputError: The plan or an arrival cannot be.
    """
    check_plan(plan)
    arrivals_s = tuple(request.arrival_s for request in requests)
    check_arrivals(arrivals_s)
    return Schedule(
        plan=plan,
        chunk_tokens=chunk_tokens,
        arrivals_s=arrivals_s,
        prompt_tokens=tuple(len(request.prompt_ids) for request in requests),
        queue=tuple(sorted(range(len(requests)), key=lambda one: arrivals_s[one])),
    )


def next_move(schedule: Schedule, now_s: float) -> Move | None:
    """Return what the run does next; None when every request is done."""
    live = schedule.live
    if schedule.owes_decode and live:
        return _decode(schedule)
    if schedule.prefill is not None:
        before = schedule.prefill
        return _chunk(schedule, before.assignments, before.end)
    if assignments := _assignable(schedule, now_s):
        return _chunk(schedule, assignments, 0)
    if live:
        return _decode(schedule)
    if schedule.queue:
        return Idle(until_s=schedule.arrivals_s[schedule.queue[0]])
    return None


def after(schedule: Schedule, move: Move, done: Collection[int] = ()) -> Schedule:
    """Return the schedule once a move was made.

    Args:
        schedule: Where the run stood.
        move: What was done.
        done: Requests that got their last token in it.
    """
    if isinstance(move, Idle):
        return schedule
    all_done = schedule.done | frozenset(done)
    if isinstance(move, Prefill):
        schedule = _after_prefill(schedule, move)
    else:
        schedule = replace(schedule, owes_decode=False)
    assignments = tuple(
        assignment for assignment in schedule.assignments if assignment.request not in all_done
    )
    if schedule.plan.policy is Policy.STATIC and assignments:
        assignments = schedule.assignments
    return replace(schedule, assignments=assignments, done=all_done)


def check_plan(plan: BatchPlan) -> None:
    """Pass when so many slots can be had.

    Raises:
        InputError: There are none, or too many.
    """
    if plan.slots is not None and not 1 <= plan.slots <= MAX_ROWS:
        msg = f"{plan.slots} slots cannot be had; give 1 to {MAX_ROWS}"
        raise InputError(msg)


def check_arrivals(arrivals_s: Sequence[float]) -> None:
    """Pass when every request arrives at or after the beginning of the run.

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
        shape: The model's sizes; its weights are taken to be in memory already.
        contexts: Tokens each row will hold in the end; rows are padded to the longest.
        free_bytes: Memory left for K/V.
    """
    for rows in range(len(contexts), 0, -1):
        if rows * kv_stored_bytes(shape, max(contexts[:rows])) <= free_bytes:
            return rows
    return 0


def check_room(shape: ModelShape, contexts: Sequence[int], free_bytes: int | None) -> None:
    """Pass when the rows' K/V fits into the memory that is free, or that is not known.

    Raises:
        InputError: It does not; the sentence says how many rows do.
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


def _assignable(schedule: Schedule, now_s: float) -> tuple[Assignment, ...]:
    """Return the seats of the requests whose prompts are fed next; empty when none can be."""
    arrived = [one for one in schedule.queue if schedule.arrivals_s[one] <= now_s]
    taken = {assignment.slot for assignment in schedule.assignments}
    free = [slot for slot in range(schedule.slots) if slot not in taken]
    if schedule.plan.policy is Policy.STATIC:
        if taken:
            return ()
    else:
        arrived = arrived[:1]
    pairs = zip(arrived, free, strict=False)
    return tuple(Assignment(request=request, slot=slot) for request, slot in pairs)


def _chunk(schedule: Schedule, assignments: tuple[Assignment, ...], start: int) -> Prefill:
    width = max(schedule.prompt_tokens[assignment.request] for assignment in assignments)
    end = min(width, start + (schedule.chunk_tokens or width))
    return Prefill(assignments=assignments, start=start, end=end, width=width)


def _decode(schedule: Schedule) -> Decode:
    is_live = tuple(assignment.request not in schedule.done for assignment in schedule.assignments)
    return Decode(assignments=schedule.assignments, is_live=is_live)


def _after_prefill(schedule: Schedule, move: Prefill) -> Schedule:
    started = {assignment.request for assignment in move.assignments}
    return replace(
        schedule,
        queue=tuple(one for one in schedule.queue if one not in started),
        assignments=schedule.assignments + move.assignments
        if move.is_last
        else schedule.assignments,
        prefill=None if move.is_last else move,
        owes_decode=schedule.chunk_tokens is not None,
    )
