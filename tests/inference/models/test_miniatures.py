"""Published models made small: their kinds of layers and experts stay, and so do the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inference.models.loading import LoadedModel, load_model
from inference.models.miniatures import RANDOM_WEIGHTS, miniature
from inference.process.recording_plans import EXPERTS_MODEL, WINDOW_MODEL
from inference.records.model import LayerType, MatrixRole


@pytest.fixture(scope="module")
def beside(tiny_model_folder: Path) -> LoadedModel:
    return load_model(str(tiny_model_folder), on_stage=lambda _stage: None)


def test_the_window_model_has_five_layers_with_a_window_and_then_one_without(
    beside: LoadedModel,
) -> None:
    made = miniature(WINDOW_MODEL, beside)

    five_and_one = (LayerType.SLIDING,) * 5 + (LayerType.FULL,)
    assert made.shape.layer_types == five_and_one * 2
    assert made.shape.windows_per_layer == ((64,) * 5 + (None,)) * 2
    assert made.model_id == f"Gemma-3-4B, {RANDOM_WEIGHTS}"
    assert made.shape.vocab_size == beside.shape.vocab_size
    assert made.eos_ids == frozenset()
    assert made.device.dtype == "float32"


def test_the_expert_model_has_the_published_experts_and_the_same_weights_each_time(
    beside: LoadedModel,
) -> None:
    made, again = miniature(EXPERTS_MODEL, beside), miniature(EXPERTS_MODEL, beside)

    experts = [one for one in made.shape.matrices if one.role is MatrixRole.EXPERT]
    assert {(one.experts, one.experts_per_token) for one in experts} == {(128, 8)}
    assert made.shape.num_attention_heads == 8 * made.shape.num_key_value_heads
    assert not made.shape.tie_word_embeddings
    pairs = zip(made.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
