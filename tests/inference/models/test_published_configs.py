"""Configs as people publish them, each with its right values, and the kinds that they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inference.counting.config_files import config_file_fields, read_config_fields
from inference.counting.costs import step_cost
from inference.counting.published_weights import as_published
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError
from inference.records.model import LayerType
from tests.cost_families import family_config

CONFIGS = Path(__file__).parent / "configs"


class Case(NamedTuple):
    """The right values in bfloat16; None for what is not known from outside."""

    row_bytes: int | None = None
    parameters: int | None = None
    context: int | None = None
    read_bytes: int | None = None


CASES = {
    "decilm-ft3-model_type-deci": Case(34_304),
    "exaone-4.5-text-pattern-string": Case(None, None, 131_072, 9_395_240_960),
    "gemma-3n-e4b": Case(None, None, 32_768, 285_212_672),
    "gemma-4-26b-a4b": Case(None, None, 131_072, 2_894_069_760),
    "kimi-k2": Case(70_272),
    "llama-3.2-11b-vision": Case(131_072),
    "minicpm-2b-pruna": Case(368_640, 2_724_880_896),
    "mistral-small-3.1-24b": Case(163_840),
    "mpt-7b-storywriter": Case(524_288),
    "openelm-270m": Case(16_128, 271_527_168),
    "qwen-7b-v1": Case(524_288, 7_721_324_544),
    "qwen2.5-vl-7b": Case(57_344),
    "qwen3-32b-fp8": Case(262_144),
    "qwen3-8b-with-bom": Case(147_456),
    "qwen3-coder-30b-a3b": Case(98_304, 30_532_122_624),
}
GROUPED = {
    "model_type": "someones_decoder",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "tie_word_embeddings": False,
}
ROW = 2 * 2 * 16 * 2  # bytes of one token in one layer of it


def outcome(name: str) -> str:
    """Return "right", "refused: why" or "wrong: what"."""
    case = CASES[name]
    try:
        shape = shape_of_config(CONFIGS / f"{name}.json", "bfloat16")
    except InputError as error:
        return f"refused: {error}"
    found = Case(
        shape.kv_bytes_per_token if case.row_bytes else None,
        shape.weight_bytes // 2 if case.parameters else None,
        case.context,
        step_cost(shape, [(1, case.context)]).kv_read_bytes if case.context else None,
    )
    return "right" if found == case else f"wrong: {found}"


@pytest.mark.golden
def test_published_configs_are_read_rightly(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {name: outcome(name) for name in CASES}

    lines = [f"  {name:34} {text}" for name, text in outcomes.items()]
    counts = [
        f"{sum(text.startswith(kind) for text in outcomes.values())} {kind}"
        for kind in ("right", "refused", "wrong")
    ]
    with capsys.disabled():
        print("\n".join(["", f"configs: {', '.join(counts)}", *lines]))  # noqa: T201  the table
    assert set(outcomes.values()) == {"right"}
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(CASES)


@pytest.mark.parametrize(
    "name", ["gemma-3n-e4b", "gemma-4-26b-a4b", "llama-3.2-11b-vision", "qwen2.5-vl-7b"]
)
def test_a_multimodal_config_says_that_only_its_text_part_is_counted(name: str) -> None:
    shape = shape_of_config(CONFIGS / f"{name}.json", "bfloat16")

    assert "text part" in shape.uncounted[0]


def test_a_wrapper_of_an_unknown_kind_is_its_text_part() -> None:
    wrapper = {"model_type": "someones_chat", "llm_config": {**GROUPED, "model_type": "llama"}}

    shape = shape_of_config({**wrapper, "vision_config": {"hidden_size": 8}}, "bfloat16")

    assert shape.kv_bytes_per_token == 4 * ROW
    assert "text part of 'someones_chat' alone" in shape.uncounted[0]


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": None, "num_layers": 4},
        {"num_key_value_heads": None, "multi_query_group_num": 2, "multi_query_attention": True},
        {"num_key_value_heads": None, "n_kv_heads": 2},
        {"vocab_size": None, "padded_vocab_size": 100},
        {"hidden_size": None, "d_model": 64},
        {"intermediate_size": None, "ffn_hidden_size": 96},
        {"num_attention_heads": None, "num_query_heads": [4, 4, 4, 4]},
        {"hidden_size": 64.0, "intermediate_size": 96.0},
        {"head_dim": 0, "n_shared_experts": 0, "num_experts": 0, "sliding_window": 0},
        {"head_dim": None, "num_local_experts": None},
    ],
    ids="-".join,
)
def test_sizes_are_read_under_other_names_and_kinds_of_number(change: dict[str, object]) -> None:
    usual = shape_of_config(GROUPED, "bfloat16")

    assert shape_of_config({**GROUPED, **change}, "bfloat16") == usual


@pytest.mark.parametrize("model_type", ["llama", "someones_decoder"])
def test_heads_that_differ_by_layer_are_counted_layer_by_layer(model_type: str) -> None:
    sizes = {"num_key_value_heads": [1, 2, 4, 2], "model_type": model_type}

    shape = shape_of_config({**GROUPED, **sizes}, "bfloat16")

    assert shape.kv_row_bytes_per_layer == (ROW // 2, ROW, 2 * ROW, ROW)


def test_layers_without_attention_or_mlp_keep_and_store_nothing() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 2}, "ffn": {"intermediate_size": 96}},
        {"attention": {"n_heads_in_group": 4}, "ffn": {"intermediate_size": 48}},
        {"attention": {"no_op": True}, "ffn": {"intermediate_size": 96}},
        {"attention": {"n_heads_in_group": 2}, "ffn": {"no_op": True}},
    ]

    shape = shape_of_config({**GROUPED, "block_configs": blocks}, "bfloat16")

    assert shape.kv_row_bytes_per_layer == (ROW, ROW // 2, 0, ROW)
    assert shape.layer_types[2] is LayerType.NONE
    widths = [one.out_features for one in shape.matrices if one.name == "mlp.up_proj"]
    assert widths == [96, 48]
    assert any("1 of 4 layers have no attention" in note for note in shape.uncounted)


def test_windows_of_an_unknown_decoder_are_those_of_its_layer_types() -> None:
    types = ["sliding_attention", "full_attention"] * 2

    shape = shape_of_config({**GROUPED, "layer_types": types, "sliding_window": 8}, "bfloat16")

    assert shape.windows_per_layer == (8, None, 8, None)


def test_a_window_of_no_known_layer_is_said_to_be_left_out() -> None:
    shape = shape_of_config({**GROUPED, "sliding_window": 8}, "bfloat16")

    assert shape.windows_per_layer == (None,) * 4
    assert any("K/V are at most these" in note for note in shape.uncounted)


def test_experts_of_an_unknown_decoder_are_counted() -> None:
    experts = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    dense_first = {"n_shared_experts": 1, "first_k_dense_replace": 1}

    shape = shape_of_config({**GROUPED, **experts, **dense_first}, "bfloat16")

    by_name = {one.name: one for one in shape.matrices}
    assert by_name["mlp.experts.up_proj"].bytes == 3 * 8 * 64 * 16 * 2
    assert by_name["mlp.shared_experts.up_proj"].copies == 3
    assert by_name["mlp.up_proj"].copies == 1


def test_latent_attention_of_an_unknown_decoder_keeps_the_latent() -> None:
    latent = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}

    shape = shape_of_config({**GROUPED, **latent, "q_lora_rank": 0}, "bfloat16")

    assert shape.kv_bytes_per_token == 4 * (32 + 8) * 2


def test_the_architecture_decides_where_several_share_a_type() -> None:
    fields = {**family_config("mixtral"), "model_type": "llama"}

    shape = shape_of_config({**fields, "architectures": ["MixtralForCausalLM"]}, "float32")

    assert shape.matrices == shape_of_config(family_config("mixtral"), "float32").matrices
    assert "counted as mixtral" in shape.uncounted[0]


def test_a_class_of_the_files_repository_is_said_not_to_be_counted() -> None:
    own = {"architectures": ["MyLlama"], "auto_map": {"AutoModelForCausalLM": "my.MyLlama"}}

    shape = shape_of_config({**family_config("llama"), **own}, "float32")

    assert "MyLlama" in shape.uncounted[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_hidden_layers": 10_000_000}, "num_hidden_layers is 10,000,000"),
        ({"num_hidden_layers": 2_001}, "no model has more than 2,000"),
        ({"hidden_size": 10**12}, "hidden_size is 1,000,000,000,000"),
        ({"intermediate_size": -4}, "intermediate_size is -4"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"num_key_value_heads": 2.5}, "num_key_value_heads is 2.5"),
        ({"num_experts": 10**9, "num_experts_per_tok": 2}, "num_experts is"),
        ({"hidden_size": 10**400}, "hidden_size is"),
        ({"hidden_size": float("nan")}, "hidden_size is nan"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_attention_heads_per_layer": [4, 4]}, "num_attention_heads_per_layer"),
        ({"hidden_size": 10**7, "intermediate_size": 10**7, "num_hidden_layers": 2_000}, "param"),
        ({"sliding_window_pattern": "LXG"}, "sliding_window_pattern is 'LXG'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("model_type", ["llama", "someones_decoder"])
def test_an_absurd_size_is_refused_before_anything_is_built(
    model_type: str, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        shape_of_config({**GROUPED, **change, "model_type": model_type}, "bfloat16")


@pytest.mark.parametrize("name", ["mistral", "bert", "clip", "someones"])
def test_no_refusal_lists_the_librarys_classes(name: str) -> None:
    with pytest.raises(InputError) as caught:
        shape_of_config({"model_type": name, "num_hidden_layers": 3.5}, "bfloat16")

    assert len(str(caught.value)) < 400
    assert "GPT2Config" not in str(caught.value)


def test_a_value_of_the_wrong_kind_is_named_with_what_was_expected() -> None:
    with pytest.raises(InputError, match="rms_norm_eps is 'small'; a llama has a number there"):
        shape_of_config({**family_config("llama"), "rms_norm_eps": "small"}, "float32")


def test_a_deep_or_endless_config_is_refused(tmp_path: Path) -> None:
    nested: dict[str, object] = {}
    for _ in range(100):
        nested = {"inner": nested}
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000, encoding="utf-8")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (2 << 20))

    with pytest.raises(InputError, match="levels deep"):
        shape_of_config({**GROUPED, "more": nested}, "bfloat16")
    with pytest.raises(InputError, match="is nested too deeply"):
        shape_of_config(deep, "bfloat16")
    with pytest.raises(InputError, match="more than 1,048,576 bytes"):
        shape_of_config(large, "bfloat16")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_part_of_a_config(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GROUPED), encoding=encoding)

    assert config_file_fields(path) == read_config_fields(path.read_bytes()) == GROUPED


# By hand: 4 layers of 2 x 64 x 64 + 2 x 64 x 32 + 3 x 64 x 96 weights; the rest in 16 bits.
LINEAR = 4 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96)
REST = 2 * (2 * 100 * 64 + 9 * 64)


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "fp8", "weight_block_size": [32, 32]}, 8 + 32 / 1024),
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, 4 + 20 / 32),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            4.5,
        ),
    ],
    ids=["fp8", "blocks", "mxfp4", "nvfp4", "awq", "gptq", "nf4", "int8", "compressed"],
)
def test_weights_as_published_are_those_of_the_quantisation(
    quantization: dict[str, object], bits: float
) -> None:
    plain = shape_of_config(GROUPED, "bfloat16")

    shape = shape_of_config({**GROUPED, "quantization_config": quantization}, "bfloat16")

    assert plain.weight_bytes == 2 * LINEAR + REST
    assert shape.weight_bytes == plain.weight_bytes
    assert shape.published_weight_bytes == LINEAR * bits / 8 + REST
    stored = as_published(shape)
    assert stored.weight_bytes == shape.published_weight_bytes
    assert stored.kv_bytes_per_token == plain.kv_bytes_per_token


def test_modules_that_are_left_out_stay_in_16_bits() -> None:
    left = {"modules_to_not_convert": ["model.layers.0.mlp", "re:.*q_proj", "lm_head"]}
    fields = {**GROUPED, "quantization_config": {"quant_method": "fp8", **left}}

    shape = shape_of_config(fields, "bfloat16")

    plain = 3 * 64 * 96 + 4 * 64 * 64
    assert shape.published_weight_bytes == LINEAR + plain + REST


@pytest.mark.parametrize(
    "left",
    [
        ["language_model.model.layers.0*", "language_model.lm_head"],
        ["model.language_model.layers.0"],
        ["re:.*layers\\.0\\..*"],
        ["model.layers.0.self_attn", "model.layers.0.mlp.*"],
        ["model.layers.[0].self_attn", "layers.0.mlp"],
    ],
)
def test_a_layer_may_be_left_out_under_any_name_of_the_decoder(left: list[str]) -> None:
    """The files of gpt-oss name "model.layers.*.self_attn", and its projections were not found."""
    fields = {**GROUPED, "quantization_config": {"quant_method": "fp8", "ignore": left}}

    shape = shape_of_config(fields, "bfloat16")

    assert shape.published_weight_bytes == LINEAR + LINEAR // 4 + REST


def test_modules_may_each_have_a_format_of_their_own() -> None:
    """Files of mixed precision list their modules; the first group's format was taken for all."""
    kept = {f"model.layers.{layer}.self_attn.q_proj": {"quant_algo": "FP8"} for layer in range(4)}
    small = {f"model.layers.{layer}.mlp": {"quant_algo": "W4A16_NVFP4"} for layer in range(4)}
    groups = {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "targets": list(kept)}}
    mixed = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "config_groups": groups}
    fields = {**GROUPED, "quantization_config": {**mixed, "quantized_layers": {**kept, **small}}}

    shape = shape_of_config(fields, "bfloat16")

    queries, mlp = 4 * 64 * 64, 4 * 3 * 64 * 96
    plain = LINEAR - queries - mlp
    assert shape.published_weight_bytes == queries + mlp * 4.5 / 8 + 2 * plain + REST
    assert shape.published_format == "mixed: FP8, NVFP4"


def test_groups_with_targets_of_their_own_are_counted_apart() -> None:
    groups = {
        "group_0": {"weights": {"num_bits": 8, "type": "float"}, "targets": ["re:.*self_attn.*"]},
        "group_1": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}},
    }
    quantization = {"quant_method": "compressed-tensors", "config_groups": groups}

    shape = shape_of_config({**GROUPED, "quantization_config": quantization}, "bfloat16")

    mlp = 4 * 3 * 64 * 96
    assert shape.published_weight_bytes == (LINEAR - mlp) + mlp * 4.5 / 8 + REST


def test_a_text_part_may_state_the_format_of_its_weights() -> None:
    """As Kimi-K2.5 is published: its format stands in text_config, and was dropped."""
    text = {**GROUPED, "quantization_config": {"quant_method": "fp8"}}

    shape = shape_of_config({"model_type": "someones_vl", "text_config": text}, "bfloat16")

    assert shape.published_weight_bytes == LINEAR + REST


def test_experts_that_are_left_out_by_layer_are_those_of_that_layer() -> None:
    """Layers were numbered from 0, though the first of them may have no experts."""
    experts = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    fields = {**GROUPED, **experts, "first_k_dense_replace": 2}
    quantization = {"quant_method": "fp8", "ignore": ["model.layers.3.mlp.experts"]}

    plain = shape_of_config(fields, "bfloat16")
    shape = shape_of_config({**fields, "quantization_config": quantization}, "bfloat16")

    by_name = {one.name: one for one in shape.matrices}
    assert by_name["mlp.experts.up_proj"].layers == (2, 3)
    assert by_name["mlp.experts.up_proj"].published_bytes == (1 + 2) * 8 * 64 * 16
    assert plain.parameters == plain.weight_bytes // 2


def test_kv_that_a_file_stores_smaller_is_said_to_be_counted_otherwise() -> None:
    scheme = {"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}

    shape = shape_of_config({**GROUPED, "quantization_config": scheme}, "bfloat16")

    assert any("K/V in fewer bits" in note for note in shape.uncounted)


def test_layers_of_linear_attention_may_be_listed_by_number() -> None:
    """As Kimi-Linear is published: layers are numbered from 1, heads have no size of their own."""
    latent = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
    linear = {"linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4]}}
    latent_experts = {
        "num_experts": 8,
        "num_experts_per_token": 2,
        "moe_intermediate_size": 16,
        "routed_expert_hidden_size": 32,
    }
    fields = {**GROUPED, **latent, **linear, **latent_experts, "num_attention_heads": 6}

    shape = shape_of_config({**fields, "num_key_value_heads": 6}, "bfloat16")

    assert shape.kv_bytes_per_token == (32 + 8) * 2
    assert [one is LayerType.RECURRENT for one in shape.layer_types] == [True, True, True, False]
    by_name = {one.name: one for one in shape.matrices}
    assert by_name["mlp.experts.up_proj"].in_features == 32
    assert by_name["mlp.latent_in"].out_features == 32


def test_an_unknown_quantisation_is_said_not_to_be_counted() -> None:
    fields = {**GROUPED, "quantization_config": {"quant_method": "my_bits"}}

    shape = shape_of_config(fields, "bfloat16")

    assert shape.published_weight_bytes is None
    assert "my_bits" in shape.uncounted[-1]
    assert as_published(shape) is shape


def test_a_text_part_that_leaves_sizes_to_its_class_says_which() -> None:
    """As llava-1.5-7b-hf is published: 4,096 wide, 32 layers and heads, all by Llama's defaults."""
    text = {"model_type": "llama", "vocab_size": 32_064}

    shape = shape_of_config({"model_type": "llava", "text_config": text}, "bfloat16")

    assert shape.kv_bytes_per_token == 32 * 2 * 4096 * 2
    assert any("no num_hidden_layers" in note and "32" in note for note in shape.uncounted)


def test_a_text_part_without_a_class_of_its_own_is_counted_by_its_sizes() -> None:
    text = {**GROUPED, "model_type": "qwen2_5_omni_text"}
    thinker = {"model_type": "qwen2_5_omni_thinker", "text_config": text}

    shape = shape_of_config({"model_type": "qwen2_5_omni", "thinker_config": thinker}, "bfloat16")

    assert shape.kv_bytes_per_token == 4 * ROW
    assert "text part of 'qwen2_5_omni' alone" in shape.uncounted[0]


def test_an_unknown_type_of_a_known_class_is_read_under_its_own_names() -> None:
    """As phi-1.5 and phi-2 were first published."""
    fields = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": None, "vocab_size": 100}
    named = {"model_type": "phi-msft", "architectures": ["PhiForCausalLM"]}

    shape = shape_of_config(
        {**fields, **named, "activation_function": "gelu_new", "n_head_kv": None}, "bfloat16"
    )

    assert shape.kv_bytes_per_token == 2 * 2 * 64 * 2
    assert [one.out_features for one in shape.matrices if one.name == "mlp.up_proj"] == [256]
    assert not any(one.name == "mlp.gate_proj" for one in shape.matrices)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
        {"model_type": "clip", "text_config": {**GROUPED, "model_type": "clip_text_model"}},
    ],
    ids=["encoder", "pictures"],
)
def test_what_writes_no_text_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError, match="choose a decoder-only model"):
        shape_of_config({**GROUPED, **fields}, "bfloat16")


def test_layers_are_stated_by_a_pattern_or_another_name() -> None:
    """NVIDIA-Nemotron-Nano-9B-v2 and LongCat-Flash state no num_hidden_layers of their own."""
    mamba = {"mamba_num_heads": 4, "mamba_head_dim": 8, "ssm_state_size": 8, "n_groups": 1}
    pattern = {"hybrid_override_pattern": "M*-M", "head_dim": 16, "model_type": "nemotron_h"}

    fields = {**GROUPED, **mamba, **pattern}
    del fields["num_hidden_layers"]

    assert shape_of_config(fields, "bfloat16").kv_bytes_per_token == ROW


def test_a_window_without_an_end_is_no_negative_size() -> None:
    fields = {**GROUPED, "model_type": "llama", "chunk_size": -1, "max_window": -1}

    assert shape_of_config(fields, "bfloat16").kv_bytes_per_token == 4 * ROW
