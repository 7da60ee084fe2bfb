"""What a growing run keeps of the attention that was looked at."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from inference.models.tokenization import TextCodec, byte_of_character
from inference.records.attention import AttentionChoice
from inference.records.options import BatchPlan
from inference.records.run import RunInfo
from inference.records.status import RunState
from inference.runs.trace_builder import Recording
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
