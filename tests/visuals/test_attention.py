"""The mask's steps and the words that go with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference.records import LayerType
from tests.visuals.traces import trace_of
from visuals.attention import allowed_cells, caption, description, mask_steps, mask_window

RUN = trace_of([b"a"] * 56, [b"b", b"c"])
SHAPE = RUN.info.shape


@pytest.mark.parametrize(("query", "context"), [(1, 1), (4, 4), (1, 57), (3, 9)])
def test_allowed_cells_are_those_of_a_lower_triangle(query: int, context: int) -> None:
    mask = np.tril(np.ones((query, context)), context - query)

    assert allowed_cells(query, context) == mask.sum()


def test_a_step_is_its_phase_and_lengths() -> None:
    assert mask_steps(RUN.events, "r0") == [["prefill", 56, 56], ["decode", 1, 57]]
    assert mask_steps(RUN.events, "another") == []


def test_the_caption_is_made_from_the_newest_step() -> None:
    assert caption((), SHAPE) == "No step yet."
    assert caption(RUN.events[:1], SHAPE) == "A triangle of 1,596 allowed cells: 56 \u00d7 56."
    assert caption(RUN.events, SHAPE) == "One new row of 57 cells: 57 keys read, 1 stored."


def test_layers_that_all_have_a_window_read_no_more_than_it() -> None:
    windowed = replace(SHAPE, layer_types=(LayerType.SLIDING,) * 2, sliding_window=8)

    assert mask_window(windowed) == 8
    assert caption(RUN.events, windowed) == "One new row of 8 cells: 8 keys read, 1 stored."


def test_where_only_some_layers_have_a_window_the_caption_says_which_are_drawn() -> None:
    mixed = replace(SHAPE, layer_types=(LayerType.SLIDING, LayerType.FULL), sliding_window=8)

    assert mask_window(mixed) is None
    assert caption(RUN.events, mixed).endswith("1 stored (layers with full attention).")


def test_the_picture_is_told_in_words() -> None:
    assert description((), SHAPE) == "Attention mask: empty, no step yet."
    assert description(RUN.events, SHAPE).startswith(
        "Attention mask: a lower triangle of 56 rows from prefill, then 1 row from decode steps."
    )
