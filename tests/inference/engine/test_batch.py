"""Who sits where in a batch, in which order, and what a step feeds; without a model."""

from __future__ import annotations

import pytest

from inference.engine.batch import Assignment, Batch, BatchRow, RowPadding, decode_block
from inference.records.options import Padding, Sampling
from inference.records.run import Request
from inference.records.steps import Finish

PROMPTS = ((7, 8, 9), (5,), (3, 4))


def batch_of(*arrivals_s: float) -> Batch:
    return Batch(
        [
            Request(
                request_id=f"r{number}",
                prompt_text="",
                prompt_ids=PROMPTS[number],
                max_new_tokens=4,
                sampling=Sampling(),
                arrival_s=arrival_s,
            )
            for number, arrival_s in enumerate(arrivals_s)
        ]
    )


def admitted(*slots: int) -> Batch:
    """Return a batch of the first requests in these slots, fed whole, with a token each."""
    batch = batch_of(*(0.0 for _ in slots))
    batch.admit([Assignment(request=number, slot=slot) for number, slot in enumerate(slots)])
    batch.advance(batch.prompt_block(end=batch.width))
    for row in batch.rows:
        row.token_ids.append(60 + row.number)
    return batch


def numbers(rows: tuple[BatchRow, ...] | list[BatchRow]) -> list[int]:
    return [row.number for row in rows]


def test_requests_wait_in_the_order_of_their_arrival_and_equal_ones_in_that_of_the_list() -> None:
    assert numbers(batch_of(2.0, 0.5, 0.5).waiting) == [1, 2, 0]


def test_a_prompt_fed_in_part_is_stored_behind_the_batch_and_joins_it_when_it_is_whole() -> None:
    batch = batch_of(0.0, 0.0, 0.0)
    batch.admit([Assignment(request=1, slot=0)])
    batch.advance(batch.prompt_block(end=1))
    batch.admit([Assignment(request=0, slot=2)])

    batch.advance(batch.prompt_block(end=2))

    assert (numbers(batch.rows), numbers(batch.arriving)) == ([1], [0])
    assert numbers(batch.stored) == [1, 0]
    last = batch.prompt_block(end=3)
    assert (last.ids, last.selects) == ([[9]], True)
    batch.advance(last)
    assert (numbers(batch.rows), batch.arriving) == ([1, 0], ())
    assert [row.slot for row in batch.rows] == [0, 2]


def test_rows_that_have_ended_leave_and_the_others_keep_their_order() -> None:
    batch = admitted(2, 0, 1)
    batch.rows[1].finish = Finish.EOS

    kept = batch.retire()

    assert kept == [0, 2]
    assert numbers(batch.rows) == [0, 2]


def test_a_row_that_has_ended_is_fed_padding_as_long_as_it_stays() -> None:
    batch = admitted(0, 1)
    batch.rows[0].finish = Finish.LENGTH

    block = decode_block(batch.rows)

    assert block.ids == [[0], [61]]
    assert block.padding == RowPadding(lengths=(0, 1))
    assert numbers([row for _, row in block.fed]) == [1]


@pytest.mark.parametrize(
    ("side", "ids"),
    [
        (Padding.LEFT, [[7, 8, 9], [0, 0, 5], [0, 3, 4]]),
        (Padding.RIGHT, [[7, 8, 9], [5, 0, 0], [3, 4, 0]]),
    ],
)
def test_the_gaps_of_a_padded_block_are_the_columns_without_a_token(
    side: Padding, ids: list[list[int]]
) -> None:
    batch = batch_of(0.0, 0.0, 0.0)
    batch.admit([Assignment(request=number, slot=number) for number in range(3)])

    block = batch.prompt_block(end=3, side=side)

    assert block.ids == ids
    padding = block.padding
    assert padding is not None
    assert [set(row[gap]) for row, gap in zip(ids, padding.gaps(3), strict=True)] == [
        set(),
        {0},
        {0},
    ]


def test_a_block_without_a_gap_is_not_padded() -> None:
    assert decode_block(admitted(0, 1, 2).rows).padding is None
