"""Which rows a cache holds after a step."""

from __future__ import annotations

import pytest

from inference.figures.rows_in_cache import rows_in_cache
from inference.records.options import BatchPlan, Policy
from tests.visuals.batches import batch_trace


def held(plan: BatchPlan, chunk: int | None = None) -> list[dict[str, int]]:
    events = batch_trace(plan, chunk_tokens=chunk).events
    return [
        {row.request_id: row.context_tokens for row in rows_in_cache(events, at)}
        for at in range(len(events))
    ]


def test_rows_that_wait_for_anothers_prefill_are_held_meanwhile() -> None:
    """Only the rows of the step itself were counted, beside a cache that measured all of them."""
    steps = held(BatchPlan(policy=Policy.CONTINUOUS, slots=2))

    assert steps == [
        {"r0": 6},
        {"r1": 2, "r0": 6},
        {"r0": 7, "r1": 3},
        {"r0": 8, "r1": 4},
        {"r2": 4, "r1": 4},
        {"r1": 5, "r2": 5},
        {"r1": 6},
        {"r1": 7},
    ]


def test_a_prompt_in_chunks_counts_once() -> None:
    steps = held(BatchPlan(policy=Policy.CONTINUOUS, slots=2), 4)

    assert steps[:4] == [{"r0": 4}, {"r0": 6}, {"r0": 7}, {"r1": 2, "r0": 7}]


def test_a_prompt_whose_chunks_go_on_is_held_while_the_other_rows_decode() -> None:
    steps = held(BatchPlan(policy=Policy.CONTINUOUS, slots=2), 1)

    assert steps[5:10] == [
        {"r0": 6},
        {"r0": 7},
        {"r1": 1, "r0": 7},
        {"r0": 8, "r1": 1},
        {"r1": 2},
    ]


@pytest.mark.parametrize("at", [0, -1])
def test_a_static_batch_holds_the_rows_of_its_own_step(at: int) -> None:
    events = batch_trace(BatchPlan()).events

    assert rows_in_cache(events, at) == events[at].rows
