"""What a growing run keeps of the attention that was looked at."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from inference.models.tokenization import TextCodec, byte_of_character
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import BatchPlan
from inference.records.run import RunInfo
from inference.records.status import RunState
from inference.runs.trace_builder import ATTENTION_BYTES, Recording
from tests.builders import TINY_DEVICE, TINY_SHAPE, byte_id, byte_tokenizer_files
from tests.visuals.batches import batch_trace

CHOICE = AttentionChoice(layer=0, head=1)


def empty_recording() -> Recording:
    info = RunInfo(
        run_id="run",
        model_id="tiny",
        shape=TINY_SHAPE,
        device=TINY_DEVICE,
        attention="sdpa",
        clock="host",
        seed=0,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        versions=(),
    )
    return Recording(info, (), TextCodec.from_files(byte_tokenizer_files()))


def bytes_as_letters(text: str) -> list[str]:
    """Return the letter of the byte tokenizer for each byte of a text."""
    letters = {byte: letter for letter, byte in byte_of_character().items()}
    return [letters[byte] for byte in text.encode()]


def row_map(step_index: int, *, kv_tokens: int = 8, query_tokens: int = 1) -> AttentionMap:
    return AttentionMap(
        choice=CHOICE,
        step_index=step_index,
        query_tokens=query_tokens,
        kv_tokens=kv_tokens,
        weights=np.zeros((1, query_tokens, kv_tokens), dtype=np.float32),
    )


def test_text_after_every_step_is_that_of_the_tokens_so_far() -> None:
    """The bytes of a character may come in several tokens; control tokens give no text."""
    codec = TextCodec.from_files(byte_tokenizer_files())
    trace = batch_trace(BatchPlan(), (2, 3), (9, 9))
    recording = Recording(trace.info, trace.requests, codec)
    ids = [*(byte_id(letter) for letter in bytes_as_letters("a\u6f22\u00e9")), 257, byte_id("b")]

    assert len(trace.events) >= len(ids)
    for index, event in enumerate(trace.events[: len(ids)]):
        rows = tuple(replace(row, token_id=ids[index]) for row in event.rows)
        recording.add(replace(event, rows=rows))

        outputs = recording.snapshot(RunState.RUNNING).outputs
        assert len(outputs) == 2
        for output in outputs:
            assert output.token_ids == tuple(ids[: index + 1])
            assert output.text == codec.decode(ids[: index + 1])


def test_maps_are_kept_in_the_order_of_their_steps() -> None:
    recording = empty_recording()

    for step in (2, 0, 1):
        recording.add_attention(row_map(step))

    assert [kept.step_index for kept in recording.attention()] == [0, 1, 2]


def test_a_map_of_another_choice_takes_the_place_of_all() -> None:
    recording = empty_recording()
    recording.add_attention(row_map(0))
    recording.add_attention(row_map(0), query=5)

    recording.add_attention(replace(row_map(1), choice=AttentionChoice(layer=2)))

    assert [kept.choice.layer for kept in recording.attention()] == [2]
    assert recording.exact_row is None


def test_an_exact_row_does_not_take_the_place_of_its_step() -> None:
    recording = empty_recording()
    whole, row = row_map(0, query_tokens=4), row_map(0)
    recording.add_attention(whole)

    recording.add_attention(row, query=3)

    assert recording.attention() == (whole,)
    assert recording.exact_row is row


def test_the_oldest_decode_rows_go_first_when_there_are_too_many() -> None:
    recording = empty_recording()
    quarter = ATTENTION_BYTES // 16
    recording.add_attention(row_map(0, query_tokens=4, kv_tokens=8))

    for step in range(1, 7):
        recording.add_attention(row_map(step, kv_tokens=quarter))

    assert [kept.step_index for kept in recording.attention()] == [0, 4, 5, 6]
    assert sum(kept.nbytes for kept in recording.attention()) <= ATTENTION_BYTES
