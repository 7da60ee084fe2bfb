"""The mask's steps and the words that go with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from inference.records.model import LayerType
from inference.records.options import BatchPlan
from inference.records.steps import StepEvent
from tests.visuals.batches import batch_trace
from tests.visuals.traces import trace_of
from visuals.charts.attention import (
    LayerKind,
    caption,
    capture_cost,
    description,
    kind_words,
    layer_items,
    layer_kinds,
    mask_rows,
    mask_steps,
)

RUN = trace_of([b"a"] * 56, [b"b", b"c"])
SHAPE = RUN.info.shape


def test_a_step_is_its_phase_and_lengths() -> None:
    assert mask_steps(RUN.events, "r0") == [["prefill", 56, 56], ["decode", 1, 57]]
    assert mask_steps(RUN.events, "another") == []


def test_the_caption_is_made_from_the_newest_step() -> None:
    assert caption((), SHAPE) == "No step yet."
    assert caption(RUN.events[:1], SHAPE) == "A triangle of 1,596 allowed cells: 56 \u00d7 56."
    assert caption(RUN.events, SHAPE) == "One new row of 57 cells: 57 keys read, 1 stored."


def test_layers_that_all_have_a_window_read_no_more_than_it() -> None:
    windowed = replace(SHAPE, layer_types=(LayerType.SLIDING,) * 2, sliding_window=8)

    assert caption(RUN.events, windowed) == (
        "One new row of 8 cells: 8 keys read, 1 stored (sliding window 8)."
    )
    assert "a band below the diagonal, 56 rows from prefill" in description(RUN.events, windowed)


def test_where_only_some_layers_have_a_window_the_caption_says_which_are_drawn() -> None:
    mixed = replace(SHAPE, layer_types=(LayerType.SLIDING, LayerType.FULL), sliding_window=8)

    assert caption(RUN.events, mixed).endswith("1 stored (full attention).")


def test_the_picture_is_told_in_words() -> None:
    assert description((), SHAPE) == "Attention mask: empty, no step yet."
    assert description(RUN.events, SHAPE).startswith(
        "Attention mask: a lower triangle of 56 rows from prefill, then 1 row from decode steps."
    )


def test_each_layer_has_the_kind_that_the_model_says() -> None:
    shape = replace(
        SHAPE,
        num_hidden_layers=5,
        layer_types=(
            LayerType.SLIDING,
            LayerType.FULL,
            LayerType.CHUNKED,
            LayerType.RECURRENT,
            LayerType.NONE,
        ),
        windows_per_layer=(8, None, 16, None, None),
        pair_flops_per_layer=(4, 4, 4, 0, 0),
    )

    assert [kind.label for kind in layer_kinds(shape)] == [
        "sliding window 8",
        "full attention",
        "chunks of 16",
        "recurrent state",
        "no attention",
    ]
    assert [kind.short for kind in layer_kinds(shape)] == [
        "window 8",
        "full",
        "chunks 16",
        "recurrent",
        "none",
    ]
    items = layer_items(shape)
    assert items["of_layer"] == [0, 1, 2, 3, 4]
    assert items["default"] == 1
    assert (items["heads"], items["kv_heads"]) == (4, 2)


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (LayerKind(type=LayerType.SLIDING, window=8), 8),
        (LayerKind(type=LayerType.CHUNKED, window=16), 9),
        (LayerKind(type=LayerType.FULL), 57),
    ],
    ids=["window", "chunk", "full"],
)
def test_the_caption_counts_the_keys_that_a_layer_of_this_kind_reads(
    kind: LayerKind, read: int
) -> None:
    words = caption(RUN.events, SHAPE, kind)

    assert f"{read} keys read" in words


def test_a_layer_without_attention_reads_no_key() -> None:
    kind = LayerKind(type=LayerType.RECURRENT, attends=False)

    assert caption(RUN.events, SHAPE, kind).startswith("Recurrent state: no query reads a key")
    assert description(RUN.events, SHAPE, kind).startswith("Attention mask: empty.")


def test_a_chunk_of_prefill_is_a_rectangle_and_a_triangle() -> None:
    row = replace(RUN.events[0].rows[0], query_tokens=16, context_tokens=48)
    chunk = replace(RUN.events[0], rows=(row,))

    assert caption((chunk,), SHAPE) == (
        "A chunk: a rectangle 16 \u00d7 32 and a triangle of 16 rows, 648 allowed cells."
    )


def test_every_distinct_kind_has_its_words() -> None:
    mixed = replace(SHAPE, layer_types=(LayerType.SLIDING, LayerType.FULL), sliding_window=8)

    short, long = kind_words(RUN.events, mixed)

    assert "8 keys read" in short["caption"]
    assert "57 keys read" in long["description"]


def test_the_words_of_a_batch_are_those_of_the_request_asked_for() -> None:
    """They were once those of whichever row came first in the newest step."""
    rows = (RUN.events[0].rows[0], replace(RUN.events[0].rows[0], request_id="r1"))
    prefill = replace(RUN.events[0], rows=rows)
    decode = replace(RUN.events[1], rows=(replace(RUN.events[1].rows[0], request_id="r1"),))

    [words] = kind_words((prefill, decode), SHAPE, "r0")

    assert words["caption"].startswith("A triangle of 1,596 allowed cells")
    assert mask_rows((prefill, decode), ("r0", "r1")) == [
        ["prefill", [[0, 56, 56], [1, 56, 56]]],
        ["decode", [[1, 1, 57]]],
    ]


def test_the_words_of_a_batch_count_its_steps_without_making_any_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are told ten times a second, of every step so far."""
    trace = batch_trace(BatchPlan(), prompts=(6, 2, 4), new_tokens=(3, 6, 2))
    made: list[StepEvent] = []
    begin: Callable[..., None] = StepEvent.__init__

    def counting(self: StepEvent, *given: object, **named: object) -> None:
        made.append(self)
        begin(self, *given, **named)

    monkeypatch.setattr(StepEvent, "__init__", counting)
    shape = trace.info.shape

    [longest], [longest_answer] = (kind_words(trace.events, shape, one) for one in ("r0", "r1"))

    assert made == []
    assert "6 rows from prefill, then 2 rows from decode steps" in longest["description"]
    assert "2 rows from prefill, then 5 rows from decode steps" in longest_answer["description"]
    replace(trace.events[0])
    assert len(made) == 1


def test_what_capturing_cost_stands_with_the_step_times_with_and_without_it() -> None:
    decode = replace(RUN.events[1], cold=False)
    captured = replace(decode, capture_s=0.0004, duration_s=0.0412)
    plain = replace(decode, duration_s=0.041)

    assert capture_cost((plain,)) == ""
    assert capture_cost((captured,)).replace("\u00a0", " ") == (
        "Capturing: 0.400 ms after each step, not counted; median step 41.2 ms with it."
    )
    assert "median step 41.2 ms with it, 41.0 ms without" in capture_cost(
        (captured, plain)
    ).replace("\u00a0", " ")
