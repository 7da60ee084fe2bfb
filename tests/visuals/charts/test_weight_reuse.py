"""Weight reuse: the line with the numbers put in."""

from __future__ import annotations

from dataclasses import replace

from inference.records.model import MatrixRole
from tests.visuals.counted import COUNTED_SHAPE, UP, counted_trace
from tests.visuals.traces import trace_of
from visuals.charts.weight_reuse import (
    caption,
    is_changed,
    label_of,
    matrix_items,
    reuse_items,
    reuse_lines,
)


def test_the_numbers_are_put_into_two_t_d_in_d_out() -> None:
    events = counted_trace(prompt_tokens=3).events

    prefill, head = reuse_lines(events[0], COUNTED_SHAPE)
    decode, _ = reuse_lines(events[1], COUNTED_SHAPE)

    assert prefill.formula == "2 · 3 · 16 · 32 = 3.07\u00a0kFLOP"
    assert decode.formula == "2 · 1 · 16 · 32 = 1.02\u00a0kFLOP"
    assert prefill.bytes_text == "W 2.05\u00a0kB read once; X and Y 576\u00a0B"
    assert (prefill.reuse_text, decode.reuse_text) == (
        "each weight used 3 times",
        "each weight used once",
    )
    assert head.tokens == 1


def test_the_same_matrix_has_a_line_for_each_phase() -> None:
    trace = counted_trace(prompt_tokens=3)

    before = reuse_items(trace.events[:1], COUNTED_SHAPE)
    after = reuse_items(trace.events, COUNTED_SHAPE)

    assert [sorted(item) for item in before] == [["prefill"], ["prefill"]]
    assert [sorted(item) for item in after] == [["decode", "prefill"]] * 2


def test_the_matrices_to_choose_from_are_those_that_multiply() -> None:
    assert [item["name"] for item in matrix_items(COUNTED_SHAPE)] == ["mlp.up_proj", "lm_head"]
    assert label_of(UP) == "mlp.up_proj in 2 layers"


def test_lines_are_sent_again_only_when_other_rows_stream_through() -> None:
    events = counted_trace(prompt_tokens=3, steps=4).events

    assert is_changed((), events[:1])
    assert is_changed(events[:1], events[:2])
    assert not is_changed(events[:2], events[:4])


def test_a_mixture_counts_the_tokens_routed_and_the_experts_expected() -> None:
    experts = replace(
        UP, role=MatrixRole.EXPERT, experts=4, experts_per_token=2, bytes=UP.bytes * 4
    )
    shape = replace(COUNTED_SHAPE, matrices=(experts,))
    event = counted_trace(prompt_tokens=3).events[1]

    [line] = reuse_lines(event, shape)

    assert line.tokens == 2
    assert line.formula == "2 · 2 · 16 · 32 = 2.05\u00a0kFLOP"
    assert line.reuse_text == "each weight used once"


def test_captions_say_what_one_read_serves() -> None:
    events = counted_trace(prompt_tokens=3).events

    assert caption((), COUNTED_SHAPE) == "No step yet."
    assert caption(events[:1], COUNTED_SHAPE) == "One read serves 3 tokens in prefill."
    assert caption(events, COUNTED_SHAPE) == "One read serves 3 tokens in prefill, 1 in decode."
    first, *rest = events
    chunks = (first, replace(first, index=1), *rest)
    assert caption(chunks, COUNTED_SHAPE) == (
        "One read serves 3 tokens in prefill chunk 2 (6 tokens so far), 1 in decode."
    )
    plain = trace_of([b"a"], [b"b"])
    assert "lists no weight matrices" in caption(plain.events, plain.info.shape)
