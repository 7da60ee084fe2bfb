"""Who runs next: both policies over every small workload, without a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from inference.counting.costs import kv_stored_bytes
from inference.engine.batch import Assignment, Batch, decode_block
from inference.engine.scheduler import (
    Decode,
    Idle,
    Move,
    Prefill,
    Scheduler,
    check_arrivals,
    check_rows_fit,
    largest_contexts,
    rows_that_fit,
)
from inference.records.errors import InputError
from inference.records.options import BatchPlan, Policy
from inference.records.run import Request
from inference.records.steps import Finish
from tests.builders import TINY_SHAPE
from tests.builders import numbered_request as request

STEP_TIME_S = 1.0


@dataclass(frozen=True)
class Made:
    """A move, when it was made, and the batch before it.

    Attributes:
        fed: Slots of the requests that it feeds, in the cache's order.
    """

    now_s: float
    move: Move
    fed: dict[int, int]
    live: list[int]
    rows: list[int]
    waiting_s: list[float]


class Simulation:
    """Plays a batch with step times of one second and remembers every move and when it began."""

    def __init__(self, requests: list[Request], plan: BatchPlan, chunk: int | None = None) -> None:
        self.requests = requests
        self.made: list[Made] = []
        self.tokens = [0] * len(requests)
        self.slots = plan.slots or len(requests)
        self._is_continuous = plan.policy is Policy.CONTINUOUS
        self._batch = Batch(requests)
        scheduler = Scheduler(plan, chunk)
        now_s = 0.0
        while (move := scheduler.next_move(self._batch, now_s)) is not None:
            assert len(self.made) < 1000, "it never ends"
            live = [row.number for row in self._batch.live]
            rows = [row.number for row in self._batch.rows]
            waiting_s = [row.request.arrival_s for row in self._batch.waiting]
            fed = {} if isinstance(move, Idle) else self._feed(move)
            self.made.append(Made(now_s, move, fed, live, rows, waiting_s))
            now_s = move.until_s if isinstance(move, Idle) else now_s + STEP_TIME_S

    @property
    def moves(self) -> list[Move]:
        return [made.move for made in self.made]

    def _feed(self, move: Prefill | Decode) -> dict[int, int]:
        """Carry a move out and return the requests that it feeds, with their slots."""
        batch = self._batch
        if self._is_continuous or not batch.live:
            batch.retire()
        if isinstance(move, Prefill):
            if move.admitted:
                batch.admit(move.admitted)
            block = batch.prompt_block(move.end)
        else:
            block = decode_block(batch.rows)
        batch.advance(block)
        for _, row in block.fed if block.selects else ():
            self.tokens[row.number] += 1
            row.token_ids.append(1)
            if self.tokens[row.number] == row.request.max_new_tokens:
                row.finish = Finish.LENGTH
        return {row.number: row.slot for row in block.rows}


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
        admitted = [
            assignment.request
            for move in run.moves
            if isinstance(move, Prefill)
            for assignment in move.admitted
        ]
        assert run.tokens == [one.max_new_tokens for one in run.requests]
        assert sorted(admitted) == list(range(len(run.requests)))
        slots = {number: slot for made in run.made for number, slot in made.fed.items()}
        for made in run.made:
            held = {*made.live, *made.fed}
            assert len({slots[number] for number in held}) == len(held) <= run.slots
            assert all(run.requests[number].arrival_s <= made.now_s for number in made.fed)
            assert all(slots[number] == slot for number, slot in made.fed.items())


@pytest.mark.parametrize(("policy", "chunk"), PLANS)
def test_the_device_is_idle_only_while_nobody_is_there(policy: Policy, chunk: int | None) -> None:
    for run in simulations(policy, chunk):
        for made in run.made:
            if isinstance(made.move, Idle):
                assert not made.live
                assert made.move.until_s > made.now_s
                assert all(arrival_s > made.now_s for arrival_s in made.waiting_s)


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_static_batch_keeps_its_rows_until_all_have_ended(chunk: int | None) -> None:
    for run in simulations(Policy.STATIC, chunk):
        for made in run.made:
            if isinstance(made.move, Decode):
                assert list(made.fed) == made.rows
                assert made.live
            elif isinstance(made.move, Prefill):
                assert not made.live


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_continuous_batch_feeds_no_row_that_has_ended(chunk: int | None) -> None:
    for run in simulations(Policy.CONTINUOUS, chunk):
        for made in run.made:
            if isinstance(made.move, Decode):
                assert list(made.fed) == made.live
            elif isinstance(made.move, Prefill):
                assert len(made.fed) == 1


def test_a_free_slot_takes_the_next_request_before_the_next_decode_step() -> None:
    requests = [request(0, 3, new=2), request(1, 2, new=4), request(2, 4, new=2)]

    run = Simulation(requests, BatchPlan(policy=Policy.CONTINUOUS, slots=2))

    assert [type(move).__name__ for move in run.moves] == [
        "Prefill", "Prefill", "Decode", "Prefill", "Decode", "Decode",
    ]  # fmt: skip
    assert run.made[3].fed == {2: 0}
    assert list(run.made[4].fed.items()) == [(1, 1), (2, 0)]


def test_other_rows_decode_between_two_chunks_of_a_prompt() -> None:
    requests = [request(0, 1, new=6), request(1, 5, new=2, arrival_s=1.5)]

    run = Simulation(requests, BatchPlan(policy=Policy.CONTINUOUS, slots=2), chunk=2)

    ends = [m.end if isinstance(m, Prefill) else type(m).__name__ for m in run.moves]
    assert ends == [1, "Decode", 2, "Decode", 4, "Decode", 5, *["Decode"] * 2]


def test_a_batch_is_made_of_those_that_have_come_in() -> None:
    requests = [request(0, 2), request(1, 2), request(2, 2, arrival_s=0.5)]

    first = Simulation(requests, BatchPlan(slots=3)).moves[0]

    assert isinstance(first, Prefill)
    assert first.admitted == (Assignment(request=0, slot=0), Assignment(request=1, slot=1))


def test_requests_are_served_in_the_order_of_their_arrival() -> None:
    requests = [request(0, 2, arrival_s=3.0), request(1, 2, arrival_s=0.0)]

    run = Simulation(requests, BatchPlan(slots=1))

    admitted = [move.admitted[0].request for move in run.moves if isinstance(move, Prefill)]
    assert admitted == [1, 0]


@pytest.mark.parametrize("arrival_s", [-0.1, float("nan"), float("inf")])
def test_an_arrival_before_the_run_or_never_is_refused(arrival_s: float) -> None:
    with pytest.raises(InputError, match=r"request 1 arrives at .* give a finite number"):
        check_arrivals([arrival_s])


@pytest.mark.parametrize("slots", [0, -1, 33])
def test_no_slots_or_too_many_are_refused(slots: int) -> None:
    with pytest.raises(InputError, match="give 1 to 32"):
        Scheduler(BatchPlan(slots=slots))


def test_a_run_of_no_requests_has_no_move() -> None:
    assert Scheduler(BatchPlan()).next_move(Batch([]), 0.0) is None


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
        check_rows_fit(TINY_SHAPE, [100] * 8, 3 * row_bytes)
    check_rows_fit(TINY_SHAPE, [100] * 8, 8 * row_bytes)
    check_rows_fit(TINY_SHAPE, [100] * 8, None)
