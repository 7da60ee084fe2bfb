"""Configs whose counts were wrong without a word, held to what their makers publish.

Published counts are those of the weights' files or, of the largest, of the report or model card;
where those are rounded, the count is worked out from the file's sizes beside each test.
"""

from __future__ import annotations

from typing import Any

import pytest

from inference.counting.costs import step_cost
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError
from tests.cost_families import family_config

DBRX = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "vocab_size": 100_352,
    "attn_config": {"kv_n_heads": 8, "rope_theta": 500_000},
    "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
}
MOLMO_7B = {
    "model_type": "molmo",
    "hidden_size": 3584,
    "intermediate_size": 37_888,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152_064,
    "qkv_bias": True,
    "weight_tying": False,
}
MOLMO_72B = {
    **MOLMO_7B,
    "hidden_size": 8192,
    "intermediate_size": 59_136,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
LATENT = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
LONGCAT = {
    **LATENT,
    "model_type": "longcat_flash",
    "hidden_size": 6144,
    "num_layers": 28,
    "num_attention_heads": 64,
    "ffn_hidden_size": 12_288,
    "expert_ffn_hidden_size": 2048,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
    "vocab_size": 131_072,
}
STEP3 = {
    "model_type": "step3_text",
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "num_attention_heads": 64,
    "num_attention_groups": 1,
    "num_hidden_layers": 61,
    "vocab_size": 128_815,
    "moe_intermediate_size": 5120,
    "moe_num_experts": 48,
    "moe_top_k": 3,
    "share_q_dim": 2048,
    "share_expert_dim": 5120,
    "head_dim": 256,
    "moe_layers_enum": ",".join(str(layer) for layer in range(4, 60)),
    "tie_word_embeddings": False,
}
STEP_FLASH = {
    "model_type": "step3p5",
    "hidden_size": 4096,
    "intermediate_size": 11_264,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_attention_groups": 8,
    "head_dim": 128,
    "vocab_size": 128_896,
    "moe_intermediate_size": 1280,
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "share_expert_dim": 1280,
    "moe_layers_enum": ",".join(str(layer) for layer in range(3, 45)),
    "sliding_window": 512,
    "layer_types": ["sliding_attention" if layer % 4 else "full_attention" for layer in range(45)],
    "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8},
    "tie_word_embeddings": False,
}
PHI_1_5 = {
    "model_type": "mixformer-sequential",
    "n_embd": 2048,
    "n_layer": 24,
    "n_head": 32,
    "n_inner": None,
    "vocab_size": 51_200,
    "tie_word_embeddings": False,
}
CHATGLM = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "inner_hidden_size": 16_384,
    "num_attention_heads": 32,
    "num_layers": 28,
    "vocab_size": 130_528,
}
REPLIT = {
    "model_type": "mpt",
    "attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8},
    "ffn_config": {"ffn_type": "mptmlp"},
    "d_model": 3072,
    "expansion_ratio": 4,
    "n_heads": 24,
    "n_layers": 32,
    "vocab_size": 32_768,
    "no_bias": True,
}
LFM2 = {
    "model_type": "lfm2",
    "block_auto_adjust_ff_dim": True,
    "block_ff_dim": 12_288,
    "block_multiple_of": 256,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "vocab_size": 65_536,
    "tie_embedding": True,
}
DEEPSEEK_LITE = {
    **LATENT,
    "model_type": "deepseek_v2",
    "q_lora_rank": None,
    "hidden_size": 2048,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 10_944,
    "vocab_size": 102_400,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "tie_word_embeddings": False,
    "rope_scaling": {
        "type": "yarn",
        "factor": 40,
        "mscale": 0.707,
        "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 4096,
    },
}


@pytest.mark.golden
@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        # Molmo's decoders are Qwen2-7B and Qwen2-72B: the parameters of their files.
        (MOLMO_7B, 7_615_616_512),
        (MOLMO_72B, 72_706_203_648),
        # The files of DeepSeek-V2-Lite, LFM2-1.2B.
        (DEEPSEEK_LITE, 15_706_484_224),
        (LFM2, 1_170_340_608),
    ],
    ids=["molmo-7b", "molmo-72b", "deepseek-v2-lite", "lfm2-1.2b"],
)
def test_parameters_are_those_of_the_published_files(
    fields: dict[str, Any], parameters: int
) -> None:
    assert shape_of_config(fields, "bfloat16").parameters == parameters


@pytest.mark.golden
@pytest.mark.parametrize(
    ("fields", "parameters", "apart"),
    [
        # "560B" in LongCat-Flash's report, "316B" of Step3's language model, "196B" of
        # Step-3.5-Flash and 0.8 of a head, "3.3B" of replit-code-v1_5: all rounded.
        (LONGCAT, 560e9, 2e-3),
        (STEP3, 316e9, 2e-3),
        (STEP_FLASH, 196.8e9, 2e-3),
        (REPLIT, 3.3e9, 2e-2),
        # The files of phi-1.5 and ChatGLM-6B; only their biases are not in the config.
        (PHI_1_5, 1_418_270_720, 1e-3),
        (CHATGLM, 6_173_286_400, 1e-3),
    ],
    ids=["longcat-flash", "step3", "step-3.5-flash", "replit-1.5", "phi-1.5", "chatglm-6b"],
)
def test_parameters_are_about_those_that_makers_state(
    fields: dict[str, Any], parameters: float, apart: float
) -> None:
    assert shape_of_config(fields, "bfloat16").parameters == pytest.approx(parameters, rel=apart)


def test_a_step_of_dbrx_uses_the_experts_that_a_token_chooses() -> None:
    """Its experts stand one below the other in one matrix; Databricks states 36 B active."""
    shape = shape_of_config(DBRX, "bfloat16")

    cost = step_cost(shape, [(1, 1)])

    attention = 6144 * (6144 + 2 * 8 * 128) + 6144 * 6144
    layer = attention + 6144 * 16 + 4 * 3 * 6144 * 10_752
    active = 40 * layer + 6144 * 100_352
    assert cost.linear_flops == 2 * active
    assert active == pytest.approx(36e9, rel=1e-2)
    assert shape.parameters == pytest.approx(132e9, rel=1e-2)
    norms = (2 * 40 + 1) * 6144
    assert cost.weight_bytes == 2 * (active + norms + 6144)
    assert shape.uncounted == ()


def test_experts_without_weights_are_said_to_be_counted_at_most() -> None:
    shape = shape_of_config(LONGCAT, "bfloat16")

    assert any("256 of 768 experts" in note and "at most" in note for note in shape.uncounted)
    assert {one.experts for one in shape.matrices if one.experts > 1} == {512}


@pytest.mark.parametrize("numbers", ["1,3", [1, 3]], ids=["text", "list"])
def test_layers_with_experts_may_be_numbered(numbers: object) -> None:
    shape = shape_of_config(
        {**STEP3, "num_hidden_layers": 4, "moe_layers_enum": numbers}, "bfloat16"
    )

    by_name = {one.name: one for one in shape.matrices}
    assert by_name["mlp.experts.up_proj"].layers == (1, 3)
    assert by_name["mlp.up_proj"].layers == (0, 2)


def test_layers_with_experts_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="moe_layers_enum is '1,x'; it must hold numbers"):
        shape_of_config({**STEP3, "moe_layers_enum": "1,x"}, "bfloat16")


def test_a_gate_that_is_assumed_is_not_called_at_least() -> None:
    """A file without an activation says nothing of a gate: with one there may be too many."""
    fields = {**STEP3, "num_hidden_layers": 5}

    assumed = shape_of_config(fields, "bfloat16").uncounted[0]
    stated = shape_of_config({**fields, "hidden_act": "silu"}, "bfloat16").uncounted[0]

    gates = 7168 * (4 * 18_432 + 49 * 5120)
    assert f"without it there are {gates:,} parameters fewer" in assumed
    assert "at least" not in assumed
    assert "at least" in stated


@pytest.mark.parametrize(
    ("attention", "row_bytes"),
    [
        ({"attn_type": "multiquery_attention"}, 32 * 2 * 128 * 2),
        ({"attn_type": "grouped_query_attention", "kv_n_heads": 8}, 32 * 2 * 8 * 128 * 2),
        ({"attn_type": "multihead_attention"}, 32 * 2 * 24 * 128 * 2),
    ],
    ids=["one", "groups", "all"],
)
def test_kv_heads_of_mpt_are_shared_as_its_file_says(
    attention: dict[str, object], row_bytes: int
) -> None:
    """By llm-foundry's attn_type; the library's class has a K/V head for each query head."""
    shape = shape_of_config({**REPLIT, "attn_config": attention}, "bfloat16")

    assert shape.kv_bytes_per_token == row_bytes


def test_a_state_that_is_not_counted_is_said_to_be_left_out() -> None:
    shape = shape_of_config(LFM2, "bfloat16")

    assert any("recurrent layers" in note and "at least" in note for note in shape.uncounted)


def test_groups_of_heads_without_their_number_are_refused() -> None:
    attention = {"attn_type": "grouped_query_attention"}

    with pytest.raises(InputError, match="no kv_n_heads above zero; add it"):
        shape_of_config({**REPLIT, "attn_config": attention}, "bfloat16")


@pytest.mark.parametrize("name", ["num_nextn_predict_layers", "num_mtp_layers"])
def test_a_layer_that_predicts_a_further_token_is_said_to_be_left_out(name: str) -> None:
    fields = family_config("llama")

    plain = shape_of_config(fields, "bfloat16")
    shape = shape_of_config({**fields, name: 1}, "bfloat16")

    assert shape.parameters == plain.parameters
    assert plain.uncounted == ()
    layer = f"weights of layer {fields['num_hidden_layers']} (counted from 0)"
    assert any(layer in note and "does not use them" in note for note in shape.uncounted)


@pytest.mark.parametrize("stated", ["fp8", [1, 2], True])
def test_a_quantisation_of_another_kind_is_said_not_to_be_counted(stated: object) -> None:
    shape = shape_of_config({**family_config("llama"), "quantization_config": stated}, "bfloat16")

    assert any("no object with a quant_method" in note for note in shape.uncounted)


def test_bits_may_be_written_as_text() -> None:
    def published(bits: object, group: object) -> int | None:
        quantization = {"quant_method": "gptq", "bits": bits, "group_size": group}
        fields = {**family_config("llama"), "quantization_config": quantization}
        return shape_of_config(fields, "bfloat16").published_weight_bytes

    assert published("4", "32") == published(4, 32) is not None


def test_bits_that_are_not_known_are_named() -> None:
    quantization = {"quant_method": "gptq", "bits": "four"}
    fields = {**family_config("llama"), "quantization_config": quantization}

    assert "'gptq' with bits 'four'" in shape_of_config(fields, "bfloat16").uncounted[-1]
