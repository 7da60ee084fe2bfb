"""Attention maps on their way: bounded messages, every weight accounted for, nothing sent twice."""

from __future__ import annotations

import numpy as np
import pytest

from inference.records.attention import AttentionChoice, AttentionMap
from tests.visuals.live_doubles import Message, taken_apart
from visuals.live.attention_feed import (
    MAX_MESSAGE_BYTES,
    Captured,
    Feed,
    choice_from,
    choice_item,
    coarser,
)

CHOICE = AttentionChoice(layer=1)
RANDOM = np.random.default_rng(0)


def everything(feed: Feed, captured: Captured) -> list[Message]:
    """Return all messages until the viewer has everything."""
    messages: list[Message] = []
    while (one := feed.next(captured)) is not None:
        messages.append(taken_apart(one))
    return messages


def prefill(tokens: int, planes: int = 1, cells: int | None = None) -> AttentionMap:
    """Return the map of a prompt, with the cells that the engine would send of it."""
    side = min(tokens, 256) if cells is None else cells
    size = -(-tokens // side)
    count = -(-tokens // size)
    weights = RANDOM.random((planes, count, count), dtype=np.float32)
    return AttentionMap(
        choice=CHOICE,
        heads=tuple(range(planes)) if planes > 1 else (),
        query_tokens=tokens,
        kv_tokens=tokens,
        query_bin=size,
        kv_bin=size,
        weights=weights,
        first_token=weights[:, :, 0],
        rest_of_first_cell=np.zeros_like(weights[:, :, 0]),
        first_output_query=tokens - 1,
    )


def decode(step: int, tokens: int, planes: int = 1) -> AttentionMap:
    weights = RANDOM.random((planes, 1, tokens), dtype=np.float32)
    return AttentionMap(
        choice=CHOICE,
        step_index=step,
        heads=tuple(range(planes)) if planes > 1 else (),
        query_start=tokens - 1,
        query_tokens=1,
        kv_tokens=tokens,
        weights=weights,
        first_token=weights[:, :, 0],
        rest_of_first_cell=np.zeros_like(weights[:, :, 0]),
    )


def test_a_small_map_travels_weight_by_weight() -> None:
    seen = prefill(40)

    state, blocks = everything(Feed(), Captured(choice=CHOICE, maps=(seen,)))

    assert state.header["choice"] == {"layer": 1, "head": None, "all": False, "row": 0}
    assert state.header["reset"] is True
    [block] = blocks.header["blocks"]
    assert (block["q0"], block["qn"], block["qb"], block["kb"]) == (0, 40, 1, 1)
    assert block["first"] == 39
    assert seen.weights is not None
    assert np.array_equal(blocks.arrays[0], seen.weights.astype(np.float16))


@pytest.mark.parametrize("planes", [1, 9, 32, 128])
def test_no_message_of_8192_tokens_is_larger_than_allowed(planes: int) -> None:
    cells = min(256, int((983_040 // (2 * planes)) ** 0.5))
    maps = (prefill(8192, planes, cells), *(decode(1 + at, 8193 + at, planes) for at in range(40)))

    messages = everything(Feed(), Captured(choice=CHOICE, maps=maps))

    assert max(message.size for message in messages) <= MAX_MESSAGE_BYTES
    blocks = [block for message in messages[1:] for block in message.header["blocks"]]
    assert sum(block["qn"] for block in blocks) == 8192 + 40
    drawn = sum(np.prod(block["shape"]) for block in blocks if block["step"] == 0)
    assert drawn <= 256 * 256
    assert all(block["shape"][2] <= 1024 for block in blocks)


def test_a_coarser_cell_holds_the_largest_weight_in_it() -> None:
    row = np.array([[[0.1, 0.7, 0.2, 0.4, 0.3]]], dtype=np.float32)

    assert coarser(row, 2, 2).tolist() == row[:, :, [1, 3, 4]].tolist()
    assert np.isnan(coarser(np.array([np.nan, 1.0]), 0, 2)).all()


def test_the_first_token_can_still_be_left_out_of_a_coarser_cell() -> None:
    weights = np.array([[[0.9] + [0.0] * 4095]], dtype=np.float32)
    weights[0, 0, 2] = 0.05
    seen = AttentionMap(
        choice=CHOICE,
        query_start=4095,
        query_tokens=1,
        kv_tokens=4096,
        weights=weights,
        first_token=weights[:, :, 0],
        rest_of_first_cell=np.zeros((1, 1), dtype=np.float32),
    )

    _, blocks = everything(Feed(), Captured(choice=CHOICE, maps=(seen,)))

    cells, rest = blocks.arrays
    assert cells[0, 0, 0] == pytest.approx(0.9, rel=1e-3)
    assert rest[0, 0] == pytest.approx(0.05, rel=1e-3)


def test_steps_are_sent_once_and_new_ones_follow() -> None:
    feed, first = Feed(), prefill(8)
    everything(feed, Captured(choice=CHOICE, maps=(first,)))

    [message] = everything(feed, Captured(choice=CHOICE, maps=(first, decode(1, 9))))

    assert [block["step"] for block in message.header["blocks"]] == [1]


def test_another_choice_begins_anew_and_sends_no_map_of_the_one_before() -> None:
    feed, seen = Feed(), prefill(8)
    everything(feed, Captured(choice=CHOICE, maps=(seen,)))

    [state] = everything(feed, Captured(choice=AttentionChoice(layer=0), maps=(seen,)))

    assert state.header["reset"] is True
    assert state.header["choice"]["layer"] == 0


def test_the_reason_for_no_weights_and_a_refusal_reach_the_viewer() -> None:
    unseen = AttentionMap(choice=CHOICE, reason="layer 1 keeps a state of fixed size")

    [state] = everything(Feed(), Captured(choice=CHOICE, maps=(unseen,), notice="There is none."))

    assert state.header["reason"] == "layer 1 keeps a state of fixed size"
    assert state.header["notice"] == "There is none."


def test_weights_that_are_no_numbers_stay_so() -> None:
    seen = prefill(4)
    assert seen.weights is not None
    seen.weights[0, 2, 1] = np.nan

    _, blocks = everything(Feed(), Captured(choice=CHOICE, maps=(seen,)))

    assert np.argwhere(np.isnan(blocks.arrays[0])).tolist() == [[0, 2, 1]]


def test_the_row_asked_for_comes_in_full_precision_from_what_is_recorded() -> None:
    feed, seen = Feed(), decode(3, 700, planes=4)
    captured = Captured(choice=CHOICE, maps=(seen,))
    everything(feed, captured)

    feed.ask(699, 2)
    [message] = everything(feed, captured)

    assert (message.header["query"], message.header["head"]) == (699, 2)
    assert seen.weights is not None
    assert np.array_equal(message.arrays[0], seen.weights[2, 0])


def test_a_row_of_a_binned_prompt_waits_for_the_engine() -> None:
    feed, seen = Feed(), prefill(8192)
    everything(feed, Captured(choice=CHOICE, maps=(seen,)))
    exact = AttentionMap(
        choice=CHOICE,
        query_start=5000,
        query_tokens=1,
        kv_tokens=8192,
        weights=RANDOM.random((1, 1, 8192), dtype=np.float32),
    )

    feed.ask(5000, None)
    before = everything(feed, Captured(choice=CHOICE, maps=(seen,)))
    [message] = everything(feed, Captured(choice=CHOICE, maps=(seen,), exact_row=exact))

    assert before == []
    assert message.size <= MAX_MESSAGE_BYTES
    assert exact.weights is not None
    assert np.array_equal(message.arrays[0], exact.weights[0, 0])


@pytest.mark.parametrize(
    "choice",
    [
        AttentionChoice(layer=3),
        AttentionChoice(layer=0, head=2),
        AttentionChoice(layer=1, is_all_heads=True),
    ],
)
def test_a_choice_reads_back_as_it_was(choice: AttentionChoice) -> None:
    assert choice_from(choice_item(choice)) == choice


@pytest.mark.parametrize(
    "value", [None, [], "x", {}, {"layer": -1}, {"layer": True}, {"layer": 1.5}, {"layer": "1"}]
)
def test_what_is_no_choice_asks_for_nothing(value: object) -> None:
    assert choice_from(value) is None
