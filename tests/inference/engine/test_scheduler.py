"""Who runs next: both policies over every small workload, without a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from inference.counting.costs import kv_stored_bytes
from inference.engine.scheduler import (
    Assignment,
    Decode,
    Idle,
    Move,
    Prefill,
    Schedule,
    after,
    check_room,
    largest_contexts,
    new_schedule,
    next_move,
    rows_that_fit,
)
from inference.records.errors import InputError
from inference.records.options import BatchPlan, Policy
from inference.records.run import Request
from tests.builders import TINY_SHAPE
from tests.builders import numbered_request as request

STEP_TIME_S = 1.0


class Simulation:
    """Plays a schedule with step times of one second and remembers every move and when it began."""

    def __init__(self, requests: list[Request], plan: BatchPlan, chunk: int | None = None) -> None:
        self.requests = requests
        self.made: list[tuple[float, Move, Schedule]] = []
        self.tokens = [0] * len(requests)
        self.schedule = new_schedule(requests, plan, chunk)
        self.now_s = 0.0
        while (move := next_move(self.schedule, self.now_s)) is not None:
            assert len(self.made) < 1000, "it never ends"
            self.made.append((self.now_s, move, self.schedule))
            self.schedule = after(self.schedule, move, self._done(move))
            self.now_s = move.until_s if isinstance(move, Idle) else self.now_s + STEP_TIME_S

    @property
    def moves(self) -> list[Move]:
        return [move for _, move, _ in self.made]

    def _done(self, move: Move) -> list[int]:
        """Return the requests whose last token this move selects."""
        assignments: tuple[Assignment, ...] = ()
        if isinstance(move, Decode):
            assignments = tuple(
                s for s, lives in zip(move.assignments, move.is_live, strict=True) if lives
            )
        elif isinstance(move, Prefill) and move.is_last:
            assignments = move.assignments
        for assignment in assignments:
            self.tokens[assignment.request] += 1
        wanted = [one.max_new_tokens for one in self.requests]
        return [s.request for s in assignments if self.tokens[s.request] == wanted[s.request]]


PLANS = [
    pytest.param(policy, chunk, id=f"{policy}-{chunk}")
    for policy, chunk in itertools.product(Policy, [None, 2])
]


def simulations(policy: Policy, chunk: int | None) -> Iterator[Simulation]:
    """Yield every small workload, played with one, two and as many slots as requests."""
    prompts = [(3,), (3, 1), (1, 4, 2), (2, 2, 5, 1)]
    for lengths, news, gap_s, slots in itertools.product(
        prompts, [(1,), (3, 1), (2, 4, 1)], [0.0, 1.5, 9.0], [None, 1, 2]
    ):
        requests = [
            request(number, length, new=news[number % len(news)], arrival_s=number * gap_s)
            for number, length in enumerate(lengths)
        ]
        yield Simulation(requests, BatchPlan(policy=policy, slots=slots), chunk)


@pytest.mark.parametrize(("policy", "chunk"), PLANS)
def test_every_request_is_fed_once_gets_its_tokens_and_never_shares_a_slot(
    policy: Policy, chunk: int | None
) -> None:
    for run in simulations(policy, chunk):
        fed = [
            assignment.request
            for move in run.moves
            if isinstance(move, Prefill) and move.is_last
            for assignment in move.assignments
        ]
        assert run.tokens == [one.max_new_tokens for one in run.requests]
        assert sorted(fed) == list(range(len(run.requests)))
        for now_s, move, before in run.made:
            assignments = () if isinstance(move, Idle) else move.assignments
            taken = {assignment.slot for assignment in (*before.assignments, *assignments)}
            assert len(taken) == len({*before.assignments, *assignments}) <= before.slots
            assert all(
                run.requests[assignment.request].arrival_s <= now_s for assignment in assignments
            )


@pytest.mark.parametrize(("policy", "chunk"), PLANS)
def test_the_device_is_idle_only_while_nobody_is_there(policy: Policy, chunk: int | None) -> None:
    for run in simulations(policy, chunk):
        for now_s, move, before in run.made:
            if isinstance(move, Idle):
                assert not before.live
                assert move.until_s > now_s
                assert all(before.arrivals_s[one] > now_s for one in before.queue)


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_static_batch_keeps_its_rows_until_all_are_done(chunk: int | None) -> None:
    for run in simulations(Policy.STATIC, chunk):
        for _, move, before in run.made:
            if isinstance(move, Decode):
                assert move.assignments == before.assignments
                assert any(move.is_live)
            elif isinstance(move, Prefill):
                assert not before.assignments


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_continuous_batch_feeds_no_row_that_is_done(chunk: int | None) -> None:
    for run in simulations(Policy.CONTINUOUS, chunk):
        for _, move, _ in run.made:
            if isinstance(move, Decode):
                assert all(move.is_live)
            elif isinstance(move, Prefill):
                assert len(move.assignments) == 1


def test_a_free_slot_takes_the_next_request_before_the_next_decode_step() -> None:
    requests = [request(0, 3, new=2), request(1, 2, new=4), request(2, 4, new=2)]

    run = Simulation(requests, BatchPlan(policy=Policy.CONTINUOUS, slots=2))

    assert [type(move).__name__ for move in run.moves] == [
        "Prefill", "Prefill", "Decode", "Prefill", "Decode", "Decode",
    ]  # fmt: skip
    third = run.moves[3]
    assert isinstance(third, Prefill)
    assert third.assignments == (Assignment(request=2, slot=0),)
    fifth = run.moves[4]
    assert isinstance(fifth, Decode)
    assert fifth.assignments == (Assignment(request=1, slot=1), Assignment(request=2, slot=0))


def test_other_rows_decode_between_two_chunks_of_a_prompt() -> None:
    requests = [request(0, 1, new=6), request(1, 5, new=2, arrival_s=1.5)]

    run = Simulation(requests, BatchPlan(policy=Policy.CONTINUOUS, slots=2), chunk=2)

    spans = [(m.start, m.end) if isinstance(m, Prefill) else type(m).__name__ for m in run.moves]
    assert spans == [(0, 1), "Decode", (0, 2), "Decode", (2, 4), "Decode", (4, 5), *["Decode"] * 2]


def test_a_batch_is_made_of_those_that_have_come_in() -> None:
    requests = [request(0, 2), request(1, 2), request(2, 2, arrival_s=0.5)]

    first = Simulation(requests, BatchPlan(slots=3)).moves[0]

    assert isinstance(first, Prefill)
    assert [assignment.request for assignment in first.assignments] == [0, 1]


def test_requests_are_served_in_the_order_of_their_arrival() -> None:
    requests = [request(0, 2, arrival_s=3.0), request(1, 2, arrival_s=0.0)]

    run = Simulation(requests, BatchPlan(slots=1))

    fed = [move.assignments[0].request for move in run.moves if isinstance(move, Prefill)]
    assert fed == [1, 0]


@pytest.mark.parametrize("arrival_s", [-0.1, float("nan"), float("inf")])
def test_an_arrival_before_the_run_or_never_is_refused(arrival_s: float) -> None:
    with pytest.raises(InputError, match=r"request 1 arrives at .* give a finite number"):
        new_schedule([request(0, 2, arrival_s=arrival_s)], BatchPlan())


@pytest.mark.parametrize("slots", [0, -1, 33])
def test_no_slots_or_too_many_are_refused(slots: int) -> None:
    with pytest.raises(InputError, match="give 1 to 32"):
        new_schedule([request(0, 2)], BatchPlan(slots=slots))


def test_a_run_of_no_requests_has_no_move() -> None:
    assert next_move(new_schedule([], BatchPlan()), 0.0) is None


def test_the_largest_rows_are_those_that_fill_the_slots_in_the_end() -> None:
    requests = [request(0, 3, new=2), request(1, 10, new=11), request(2, 5, new=1)]

    assert largest_contexts(requests, BatchPlan(), None) == [20, 5, 4]
    assert largest_contexts(requests, BatchPlan(slots=2), None) == [20, 5]
    assert largest_contexts(requests, BatchPlan(slots=9), context_limit=16) == [16, 5, 4]


def test_rows_fit_as_long_as_their_padded_keys_and_values_do() -> None:
    row_bytes = kv_stored_bytes(TINY_SHAPE, 100)

    assert rows_that_fit(TINY_SHAPE, [100] * 8, 3 * row_bytes) == 3
    assert rows_that_fit(TINY_SHAPE, [10, 100, 10], 2 * row_bytes) == 2
    assert rows_that_fit(TINY_SHAPE, [100], row_bytes - 1) == 0


def test_the_refusal_says_how_many_rows_fit() -> None:
    row_bytes = kv_stored_bytes(TINY_SHAPE, 100)

    with pytest.raises(InputError, match=r"8 rows .* 3 of them fit"):
        check_room(TINY_SHAPE, [100] * 8, 3 * row_bytes)
    check_room(TINY_SHAPE, [100] * 8, 8 * row_bytes)
    check_room(TINY_SHAPE, [100] * 8, None)
