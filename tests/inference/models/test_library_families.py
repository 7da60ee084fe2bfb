"""Configs of the library's families, at their default sizes, beside the classes themselves.

K/V are not derived but read off the cache that the class fills in a forward pass on torch's meta
device; parameters are counted on the same model. Nothing is computed and no memory is needed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from inference.counting.costs import step_cost
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError

TOKENS = 8
OWN_NAMES = json.loads((Path(__file__).parent / "own_names.json").read_text(encoding="utf-8"))
FAMILIES = (
    "afmoe",
    "arcee",
    "bloom",
    "cohere2",
    "deepseek_v32",
    "ernie4_5",
    "exaone4",
    "falcon",
    "falcon_h1",
    "gemma2",
    "gemma3_text",
    "glm4",
    "gpt2",
    "gpt_neox",
    "gpt_oss",
    "granitemoe",
    "hy_v4",
    "jamba",
    "lfm2",
    "llama",
    "minicpm3",
    "minimax",
    "mistral",
    "mixtral",
    "mllama",
    "mpt",
    "nemotron_h",
    "olmo3",
    "opt",
    "phi3",
    "qwen2_moe",
    "qwen3_next",
    "smollm3",
    "stablelm",
    "starcoder2",
    "zamba2",
)
# What keeps K/V of a layer more than once says so, and counts at least.
LOOPED = ("dory", "inkling2_loop_text")


def fields_of(family: str) -> dict[str, object]:
    """Return a family's default config as a file would have it."""
    plain = json.loads(json.dumps(CONFIG_MAPPING[family]().to_dict(), default=str))
    return {**plain, "model_type": family}


def measured(family: str) -> tuple[int, float]:
    """Return the parameters of the class, and the K/V bytes that its cache holds of a token."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            CONFIG_MAPPING[family](), dtype=torch.bfloat16, attn_implementation="eager"
        ).eval()
        out = model(input_ids=torch.zeros((1, TOKENS), dtype=torch.long), use_cache=True)
    stored = (
        getattr(layer, name, None)
        for layer in out.past_key_values.layers
        for name in ("keys", "values", "indexer_keys")
    )
    elements = sum(
        one.numel() for one in stored if isinstance(one, Tensor) and TOKENS in one.shape[-2:]
    )
    unique = {id(one): one for one in model.parameters()}
    return sum(one.numel() for one in unique.values()), elements * 2 / TOKENS


def outcome(family: str) -> str:
    """Return "right", "refused: why" or "wrong: what"."""
    try:
        shape = shape_of_config(fields_of(family), "bfloat16")
    except InputError as error:
        return f"refused: {error}"
    counted, found = (shape.parameters, shape.kv_bytes_per_token or 0), measured(family)
    return "right" if counted == found else f"wrong: {counted} for {found}"


@pytest.mark.golden
def test_families_are_counted_as_their_classes_are(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {family: outcome(family) for family in FAMILIES}

    lines = [f"  {family:<34} {said[:120]}" for family, said in outcomes.items()]
    counts = [
        f"{sum(said.startswith(kind) for said in outcomes.values())} {kind}"
        for kind in ("right", "refused", "wrong")
    ]
    with capsys.disabled():
        print("\n".join(["", f"families: {', '.join(counts)}", *lines]))  # noqa: T201  the table
    assert set(outcomes.values()) == {"right"}


@pytest.mark.parametrize("family", LOOPED)
def test_layers_that_run_more_than_once_are_said_to_be_counted_once(family: str) -> None:
    """K/V of 36 layers were counted where the cache keeps those of 56."""
    shape = shape_of_config(fields_of(family), "bfloat16")

    assert any("more than once" in note and "at least" in note for note in shape.uncounted)
    assert (shape.kv_bytes_per_token or 0) < measured(family)[1]


@pytest.mark.parametrize("family", ["dots1", "hunyuan_v1_dense", "nemotron", "qwen4_exp_text"])
def test_a_class_that_cannot_be_built_is_counted_by_the_files_sizes(family: str) -> None:
    shape = shape_of_config(fields_of(family), "bfloat16")

    assert any("cannot be built here" in note for note in shape.uncounted)
    assert shape.kv_bytes_per_token


@pytest.mark.parametrize("family", ["blt", "dbrx", "musicgen", "bart", "whisper", "reformer"])
def test_what_is_no_decoder_of_layers_is_refused_in_a_sentence(family: str) -> None:
    with pytest.raises(InputError) as caught:
        shape_of_config(fields_of(family), "bfloat16")

    assert len(str(caught.value)) < 400


@pytest.mark.golden
@pytest.mark.parametrize("name", OWN_NAMES)
def test_sizes_under_the_names_of_other_repositories_are_counted(name: str) -> None:
    """K/V by hand, parameters by the indices of the published weights."""
    case = OWN_NAMES[name]

    shape = shape_of_config(case["config"], "bfloat16")

    assert shape.kv_bytes_per_token == case["kv_bytes"]
    if case["parameters"] is not None:
        assert shape.parameters == case["parameters"]


def test_what_only_an_engine_shares_is_said() -> None:
    shape = shape_of_config(OWN_NAMES["falcon-40b"]["config"], "bfloat16")

    assert any("the 8 that they share" in note for note in shape.uncounted)


def test_pictures_of_an_unknown_model_are_said_to_be_left_out() -> None:
    shape = shape_of_config(OWN_NAMES["minicpm-v-2.6"]["config"], "bfloat16")

    assert any("text part only" in note for note in shape.uncounted)


def test_layers_that_share_keys_and_values_keep_them_once() -> None:
    """As Hunyuan-Large is published: pairs of layers have one cache, and it was counted twice."""
    fields = {
        "model_type": "hunyuan",
        "hidden_size": 6400,
        "num_hidden_layers": 64,
        "num_attention_heads": 80,
        "num_key_value_heads": 8,
        "attention_head_dim": 128,
        "intermediate_size": 18304,
        "vocab_size": 129_024,
        "num_experts": 16,
        "moe_topk": 1,
        "num_shared_expert": 1,
        "use_cla": True,
        "cla_share_factor": 2,
    }

    shape = shape_of_config(fields, "bfloat16")

    assert shape.kv_bytes_per_token == 32 * 8 * 256 * 2
    assert any("32 of 64 layers attend to an earlier layer's K/V" in n for n in shape.uncounted)
    by_name = {one.name: one for one in shape.matrices}
    assert (by_name["self_attn.q_proj"].copies, by_name["self_attn.k_proj"].copies) == (64, 32)


def test_groups_of_queries_are_kv_heads_under_another_name() -> None:
    """As Step-3 is published: one K/V head of 256 for 64 queries, counted as 64."""
    fields = {
        "model_type": "step3_of_old",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_attention_groups": 1,
        "head_dim": 256,
        "intermediate_size": 18432,
        "vocab_size": 128_815,
    }

    assert shape_of_config(fields, "bfloat16").kv_bytes_per_token == 61 * 512 * 2


def test_kinds_of_layers_may_be_listed_under_another_name_or_not_at_all() -> None:
    fields = {
        "model_type": "someones_hybrid",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 100,
        "mamba_d_state": 16,
    }
    kinds = ["mamba", "mamba", "attention", "mamba"]

    listed = shape_of_config({**fields, "layers_block_type": kinds}, "bfloat16")
    unlisted = shape_of_config(fields, "bfloat16")

    assert listed.kv_bytes_per_token == 2 * 32 * 2
    assert unlisted.kv_bytes_per_token == 4 * 2 * 32 * 2
    assert any("mamba_d_state" in n and "at most" in n for n in unlisted.uncounted)


def test_experts_may_be_chosen_by_a_number_for_each_layer() -> None:
    """As Hunyuan-A13B is published: 13 billion parameters are active, and experts were left out."""
    fields = {
        "model_type": "hunyuan_v1_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "moe_intermediate_size": [3072] * 32,
        "moe_topk": [8] * 32,
        "num_shared_expert": [1] * 32,
        "num_experts": 64,
        "vocab_size": 128_167,
        "tie_word_embeddings": True,
        "rope_theta": 10_000.0,
    }

    shape = shape_of_config(fields, "bfloat16")

    assert not any("not in the counted products" in note for note in shape.uncounted)
    active = step_cost(shape, [(1, 1)]).linear_flops / 2
    assert active == pytest.approx(13e9, rel=0.05)
