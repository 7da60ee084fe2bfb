"""Which layer and head an order is looked at, for the model it meets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.process.orders import capture_of, middle_layer
from inference.records.attention import AttentionChoice
from inference.records.model import LayerType, ModelShape
from tests.builders import TINY_SHAPE, order

FULL, SLIDING, RECURRENT = LayerType.FULL, LayerType.SLIDING, LayerType.RECURRENT


def shape_of(*kinds: LayerType) -> ModelShape:
    return replace(TINY_SHAPE, num_hidden_layers=len(kinds), layer_types=kinds)


@pytest.mark.parametrize(
    ("kinds", "layer"),
    [
        ((FULL,) * 30, 15),
        ((FULL, SLIDING, SLIDING, SLIDING), 0),
        ((RECURRENT, RECURRENT, RECURRENT, SLIDING), 3),
        ((RECURRENT,) * 4, 2),
        ((FULL,), 0),
    ],
    ids=["all full", "full preferred", "the only one that attends", "none attends", "one layer"],
)
def test_the_middle_layer_is_one_that_attends(kinds: tuple[LayerType, ...], layer: int) -> None:
    assert middle_layer(shape_of(*kinds)) == layer


def test_an_order_that_is_not_captured_looks_at_nothing() -> None:
    chosen = replace(order(), capture=AttentionChoice(layer=0))

    assert capture_of(chosen, shape_of(FULL, FULL)) is None


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (None, AttentionChoice(layer=2)),
        (AttentionChoice(layer=0, head=3), AttentionChoice(layer=0, head=3)),
        (AttentionChoice(layer=4), AttentionChoice(layer=2)),
        (AttentionChoice(layer=0, head=4), AttentionChoice(layer=2)),
    ],
    ids=["none", "there", "no such layer", "no such head"],
)
def test_a_choice_that_the_model_does_not_have_gives_way_to_the_middle_layer(
    capture: AttentionChoice | None, expected: AttentionChoice
) -> None:
    chosen = replace(order(), is_captured=True, capture=capture)

    assert capture_of(chosen, shape_of(FULL, FULL, FULL, FULL)) == expected


def test_a_row_that_the_order_has_no_prompt_for_gives_way_to_the_first() -> None:
    capture = AttentionChoice(layer=0, slot=3)
    alone = replace(order(), is_captured=True, capture=capture)
    batch = replace(alone, prompts=("a", "b", "c", "d"))

    assert capture_of(alone, shape_of(FULL, FULL)) == AttentionChoice(layer=0)
    assert capture_of(batch, shape_of(FULL, FULL)) == capture
