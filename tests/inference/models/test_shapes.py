"""Tests of inference/shapes.py: sizes read from a model agree with its own tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, T5Config

from inference.counting.public_configs import public_config
from inference.models.config_shapes import shape_of_config
from inference.models.shapes import model_shape
from inference.records.errors import InputError, UnsupportedModelError
from inference.records.model import LayerType, MatrixRole, ModelShape, WeightMatrix
from tests.cost_families import FAMILIES, family_config, family_model

PROMPT = 9


def cached_row_bytes(model: PreTrainedModel) -> tuple[int, ...]:
    """Return the K/V bytes one token takes in each layer, from the cache's own tensors."""
    ids = torch.arange(1, PROMPT + 1)[None]
    with torch.no_grad():
        cache = model(ids, use_cache=True).cache
    return tuple(
        row_bytes(getattr(layer, "keys", None)) + row_bytes(getattr(layer, "values", None))
        for layer in cache.layers
    )


def row_bytes(kept: torch.Tensor | None) -> int:
    """Return the bytes of one token's row in a tensor of keys or values."""
    return 0 if kept is None else kept.nbytes // kept.shape[-2]


def matrix(shape: ModelShape, name: str) -> WeightMatrix:
    """Return the matrix of that name."""
    return next(one for one in shape.matrices if one.name == name)


@pytest.mark.golden
@pytest.mark.parametrize("family", FAMILIES)
def test_kv_bytes_of_every_layer_are_those_of_the_caches_tensors(family: str) -> None:
    model = family_model(family)

    shape = model_shape(model)

    assert shape.kv_row_bytes_per_layer == cached_row_bytes(model)
    assert (shape.kv_bytes_per_token or 0) == sum(shape.kv_row_bytes_per_layer)


@pytest.mark.golden
@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_alone_gives_the_shape_of_the_built_model(family: str) -> None:
    model = family_model(family)

    shape = shape_of_config(family_config(family), "float32")

    assert shape == model_shape(model)
    assert shape.weight_bytes == sum(one.nbytes for one in model.parameters())


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "parameters", "kv_bytes"),
    [
        ("Llama-3.1-8B", 8_030_261_248, 131_072),
        ("Llama-3.1-70B", 70_553_706_496, 327_680),
        ("Llama-2-13B", 13_015_864_320, 819_200),
        ("Qwen2.5-0.5B", 494_032_768, 12_288),
        ("GPT-2", 124_439_808, 36_864),
        ("Mistral-7B", 7_241_732_096, 131_072),
        ("Mixtral-8x7B", 46_702_792_704, 131_072),
        ("SmolLM2-135M", 134_515_008, 23_040),
        ("Gemma-2-9B", 9_241_705_984, 344_064),
        ("Falcon-7B", 6_921_720_704, 8_192),
        ("gpt-oss-20b", 20_914_757_184, 49_152),
    ],
)
def test_published_models_have_their_published_sizes(
    name: str, parameters: int, kv_bytes: int
) -> None:
    shape = shape_of_config(public_config(name), "bfloat16")

    assert shape.weight_bytes == 2 * parameters
    assert shape.kv_bytes_per_token == kv_bytes


@pytest.mark.golden
def test_latent_attention_caches_one_latent_and_one_rotary_key() -> None:
    shape = shape_of_config(public_config("DeepSeek-V3"), "bfloat16")

    assert shape.kv_bytes_per_token == 61 * (512 + 64) * 2
    assert shape.pair_flops_per_layer[0] == 2 * 128 * (128 + 64 + 128)
    assert matrix(shape, "self_attn.kv_b_proj").is_expansion


def test_packed_experts_of_a_mixture_are_found() -> None:
    shape = shape_of_config(public_config("Mixtral-8x7B"), "bfloat16")

    experts = [one for one in shape.matrices if one.role is MatrixRole.EXPERT]
    gate_up = matrix(shape, "mlp.experts.gate_up_proj")

    assert (gate_up.in_features, gate_up.out_features) == (4096, 2 * 14336)
    assert (gate_up.copies, gate_up.experts, gate_up.experts_per_token) == (32, 8, 2)
    assert sum(one.bytes for one in experts) / shape.weight_bytes > 0.96


def test_transposed_packed_experts_have_their_inputs_first() -> None:
    shape = shape_of_config(public_config("gpt-oss-20b"), "bfloat16")

    gate_up = matrix(shape, "mlp.experts.gate_up_proj")

    assert (gate_up.in_features, gate_up.out_features) == (2880, 5760)


def test_a_tied_head_shares_the_embedding_and_an_untied_one_does_not() -> None:
    tied = shape_of_config(public_config("Qwen2.5-0.5B"), "bfloat16")
    untied = shape_of_config(public_config("Llama-3.1-8B"), "bfloat16")

    assert tied.tie_word_embeddings
    assert matrix(tied, "lm_head").is_tied
    assert not untied.tie_word_embeddings
    assert not matrix(untied, "lm_head").is_tied


def test_windows_are_those_of_each_layer() -> None:
    shape = model_shape(family_model("gemma2"))

    assert shape.layer_types == (LayerType.SLIDING, LayerType.FULL)
    assert shape.windows_per_layer == (6, None)
    assert shape.sliding_window == 6


def test_a_model_without_attention_keeps_no_kv_and_says_what_is_not_counted() -> None:
    shape = model_shape(family_model("mamba"))

    assert shape.kv_bytes_per_token is None
    assert set(shape.layer_types) == {LayerType.RECURRENT}
    assert any("recurrent" in sentence for sentence in shape.uncounted)


def test_layers_that_share_kv_store_none_and_keep_their_window() -> None:
    shape = model_shape(family_model("gemma4_text"))

    assert shape.kv_row_bytes_per_layer[-2:] == (0, 0)
    assert shape.windows_per_layer == (6, None, 6, None, 6, None)
    assert shape.pair_flops_per_layer == (2 * 4 * 16, 2 * 4 * 32) * 3
    assert any("another layer's K/V" in sentence for sentence in shape.uncounted)


def test_a_vision_tower_is_resident_but_idle_in_a_text_step() -> None:
    text = {
        key: value for key, value in family_config("gemma3_text").items() if key != "model_type"
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }

    shape = shape_of_config(
        {"model_type": "gemma3", "text_config": text, "vision_config": vision}, "float32"
    )

    assert shape.idle_weight_bytes > 0
    assert shape.hidden_size == 32
    assert not any("vision" in one.name for one in shape.matrices)


def test_an_encoder_decoder_is_refused_in_a_sentence() -> None:
    config = T5Config(vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4)
    model = AutoModelForSeq2SeqLM.from_config(config)

    with pytest.raises(UnsupportedModelError, match="encoder-decoder"):
        model_shape(model)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (
            {"model_type": "no_such_architecture", "num_local_experts": 8},
            UnsupportedModelError,
            r"no_such_architecture.*num_local_experts",
        ),
        ({"model_type": None}, InputError, "model_type"),
        ({"hidden_size": 0}, InputError, "hidden_size is 0"),
        ({"num_hidden_layers": -1}, InputError, "num_hidden_layers"),
        ({"vocab_size": "many"}, InputError, "vocab_size"),
        ({"num_attention_heads": 0}, InputError, "num_attention_heads"),
        ({"num_attention_heads": 5}, InputError, "not a multiple"),
        ({"num_key_value_heads": 3}, InputError, "cannot share 3 K/V heads evenly"),
        ({"hidden_act": "no_such_function"}, UnsupportedModelError, "no_such_function"),
    ],
    ids=[
        "unknown",
        "no type",
        "zero",
        "negative",
        "no number",
        "no heads",
        "uneven",
        "uneven groups",
        "activation",
    ],
)
def test_an_unusable_config_is_refused_in_a_sentence(
    change: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    fields = {**family_config("llama"), **change}

    with pytest.raises(error, match=sentence):
        shape_of_config(fields, "float32")


def test_an_unknown_architecture_is_counted_as_a_usual_decoder_and_says_so() -> None:
    odd = {"model_type": "no_such_architecture", "odd_field": 3, "tie_word_embeddings": False}
    fields = {**family_config("llama"), **odd}

    shape = shape_of_config(fields, "float32")

    known = shape_of_config(family_config("llama"), "float32")
    assert shape.matrices == known.matrices
    assert shape.kv_row_bytes_per_layer == known.kv_row_bytes_per_layer
    assert shape.model_type == "no_such_architecture"
    assert "'no_such_architecture' is not one that transformers knows" in shape.uncounted[0]


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"]
)
@pytest.mark.parametrize("architecture", ["llama", "no_such_architecture"])
def test_a_missing_size_is_not_filled_with_the_architectures_default(
    field: str, architecture: str
) -> None:
    fields = {**family_config("llama"), "model_type": architecture}
    del fields[field]

    with pytest.raises((InputError, UnsupportedModelError), match=field):
        shape_of_config(fields, "float32")


def test_an_encoder_decoders_config_is_refused() -> None:
    fields = T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4
    ).to_dict()

    with pytest.raises(UnsupportedModelError, match="encoder-decoder"):
        shape_of_config(fields, "float32")


def test_a_config_that_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "config.json"
    broken.write_text("{", encoding="utf-8")

    with pytest.raises(InputError, match="not JSON"):
        shape_of_config(broken, "float32")
    with pytest.raises(InputError, match="cannot read"):
        shape_of_config(tmp_path / "missing.json", "float32")
    with pytest.raises(InputError, match="int3"):
        shape_of_config(family_config("llama"), "int3")


def test_a_folder_stands_for_the_config_in_it(tmp_path: Path) -> None:
    fields = family_config("llama")
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")

    assert shape_of_config(tmp_path, "float32") == shape_of_config(fields, "float32")
