"""The built-in models beside what their makers publish: parameters, and K/V bytes by hand."""

from __future__ import annotations

import pytest

from inference.counting.costs import step_cost
from inference.counting.public_configs import public_config_names
from inference.counting.public_shapes import public_shape
from inference.counting.published_weights import as_published

pytestmark = pytest.mark.golden

B = 10**9
# Parameters as a model's card, its report or the index of its weight files states them, and half a
# unit of the last digit stated. Whole numbers are those of the index.
EXACT = {
    "GPT-2": 124_439_808,
    "Gemma-2-9B": 9_241_705_984,
    "Gemma-3-4B": 4_300_079_472,
    "Gemma-3-12B": 12_187_325_040,
    "Gemma-3-27B": 27_432_406_640,
    "Llama-2-13B": 13_015_864_320,
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3.1-70B": 70_553_706_496,
    "Llama-3.1-405B": 405_853_388_800,
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-3.2-3B": 3_212_749_824,
    "Mistral-7B": 7_241_732_096,
    "Mistral-Nemo-12B": 12_247_782_400,
    "Mistral-Small-3.1-24B": 24_011_361_280,
    "Mixtral-8x7B": 46_702_792_704,
    "Phi-4": 14_659_507_200,
    "Qwen2.5-0.5B": 494_032_768,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-72B": 72_706_203_648,
    "Qwen3-4B": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-14B": 14_768_307_200,
    "Qwen3-30B-A3B": 30_532_122_624,
    "Qwen3-32B": 32_762_123_264,
    "Qwen3-235B-A22B": 235_093_634_560,
    "SmolLM2-135M": 134_515_008,
    # Of the index 58 x 256 numbers are the routers' corrections, no parameters of the class.
    "DeepSeek-V3": 671_026_419_200 - 58 * 256,
    # And an indexer in each of 61 layers: 64 heads of 128 from 1,536; one key of 128 with a norm of
    # two vectors; a weight for each head.
    "DeepSeek-V3.2": 671_026_419_200
    - 58 * 256
    + 61 * (1536 * 64 * 128 + 7168 * 128 + 2 * 128 + 7168 * 64),
}
STATED = {
    "Falcon-7B": (7 * B, B // 2, "The Falcon Series, table 1"),
    "GLM-5": (744 * B, B // 2, "model card"),
    "Gemma-4-26B-A4B": (26 * B, B // 2, "the model's name"),
    "Kimi-K2": (1000 * B, 50 * B, "model card: 1T"),
    "Llama-4-Scout": (
        109 * B,
        3 * B // 2,
        "model card; 0.9 B of pictures are not in the text part",
    ),
    "MiniMax-M2.5": (230 * B, 5 * B, "model card"),
    "Mixtral-8x22B": (141 * B, B // 2, "Mistral AI, Cheaper, Better, Faster, Stronger"),
    "Nemotron-3-Nano-30B-A3B": (316 * B // 10, B // 20, "technical report"),
    "Qwen3-0.6B": (6 * B // 10, B // 20, "model card"),
    "Qwen3-Coder-480B-A35B": (480 * B, B // 2, "model card"),
    "Qwen3.5-27B": (27 * B, B // 2, "the model's name; pictures' weights are not in the text part"),
    "Qwen3.5-35B-A3B": (35 * B, B // 2, "the model's name; likewise"),
    "gpt-oss-20b": (2091 * B // 100, B // 200, "model card, table 1"),
    "gpt-oss-120b": (11683 * B // 100, B // 200, "model card, table 1"),
}
# K/V of one token in bfloat16: layers that keep any x K/V heads x (key + value) x 2 bytes.
KV_BYTES = {
    "DeepSeek-V3": 61 * (512 + 64) * 2,  # DeepSeek-V2, section 2.1: the latent and the rotary key
    "DeepSeek-V3.2": 61 * (512 + 64 + 128) * 2,  # and the indexer's key
    "Falcon-7B": 32 * 1 * 128 * 2,
    "GLM-5": 78 * (512 + 64 + 128) * 2,
    "GPT-2": 12 * 12 * 128 * 2,
    "Gemma-2-9B": 42 * 8 * 512 * 2,
    "Gemma-3-12B": 48 * 8 * 512 * 2,
    "Gemma-3-27B": 62 * 16 * 256 * 2,
    "Gemma-3-4B": 34 * 4 * 512 * 2,
    "Gemma-4-26B-A4B": (25 * 8 * 512 + 5 * 2 * 1024) * 2,
    "Kimi-K2": 61 * (512 + 64) * 2,
    "Llama-2-13B": 40 * 40 * 256 * 2,
    "Llama-3.1-405B": 126 * 8 * 256 * 2,
    "Llama-3.1-70B": 80 * 8 * 256 * 2,
    "Llama-3.1-8B": 32 * 8 * 256 * 2,
    "Llama-3.2-1B": 16 * 8 * 128 * 2,
    "Llama-3.2-3B": 28 * 8 * 256 * 2,
    "Llama-4-Scout": 48 * 8 * 256 * 2,
    "MiniMax-M2.5": 62 * 8 * 256 * 2,
    "Mistral-7B": 32 * 8 * 256 * 2,
    "Mistral-Nemo-12B": 40 * 8 * 256 * 2,
    "Mistral-Small-3.1-24B": 40 * 8 * 256 * 2,
    "Mixtral-8x22B": 56 * 8 * 256 * 2,
    "Mixtral-8x7B": 32 * 8 * 256 * 2,
    "Nemotron-3-Nano-30B-A3B": 6 * 2 * 256 * 2,
    "Phi-4": 40 * 10 * 256 * 2,
    "Qwen2.5-0.5B": 24 * 2 * 128 * 2,
    "Qwen2.5-72B": 80 * 8 * 256 * 2,
    "Qwen2.5-7B": 28 * 4 * 256 * 2,
    "Qwen3-0.6B": 28 * 8 * 256 * 2,
    "Qwen3-14B": 40 * 8 * 256 * 2,
    "Qwen3-235B-A22B": 94 * 4 * 256 * 2,
    "Qwen3-30B-A3B": 48 * 4 * 256 * 2,
    "Qwen3-32B": 64 * 8 * 256 * 2,
    "Qwen3-4B": 36 * 8 * 256 * 2,
    "Qwen3-8B": 36 * 8 * 256 * 2,
    "Qwen3-Coder-480B-A35B": 62 * 8 * 256 * 2,
    "Qwen3.5-27B": 16 * 4 * 512 * 2,
    "Qwen3.5-35B-A3B": 10 * 2 * 512 * 2,
    "SmolLM2-135M": 30 * 3 * 128 * 2,
    "gpt-oss-120b": 36 * 8 * 128 * 2,
    "gpt-oss-20b": 24 * 8 * 128 * 2,
}
# What one token passes through, as model cards state it: matrices only, one row of the embedding.
ACTIVE = {
    "DeepSeek-V3": (37 * B, B),
    "GLM-5": (40 * B, 3 * B // 2),
    "Qwen3-235B-A22B": (22 * B, B // 2),
    "Qwen3-30B-A3B": (33 * B // 10, 3 * B // 10),
    "Qwen3-Coder-480B-A35B": (35 * B, B // 2),
    "gpt-oss-120b": (513 * B // 100, B // 2),
    "gpt-oss-20b": (361 * B // 100, B // 2),
}


def test_every_built_in_model_is_in_the_tables() -> None:
    names = set(public_config_names())

    assert len(names) >= 25
    assert names == EXACT.keys() | STATED.keys() == KV_BYTES.keys()


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_those_of_the_published_weights(name: str) -> None:
    assert public_shape(name, "bfloat16").parameters == EXACT[name]


@pytest.mark.parametrize("name", STATED)
def test_parameters_are_those_that_the_makers_state(name: str) -> None:
    stated, slack, source = STATED[name]

    counted = public_shape(name, "bfloat16").parameters

    assert counted is not None
    assert abs(counted - stated) <= slack, source


@pytest.mark.parametrize("name", KV_BYTES)
def test_kv_bytes_are_those_counted_by_hand(name: str) -> None:
    assert public_shape(name, "bfloat16").kv_bytes_per_token == KV_BYTES[name]


@pytest.mark.parametrize("name", ACTIVE)
def test_a_token_passes_through_as_many_parameters_as_stated(name: str) -> None:
    stated, slack = ACTIVE[name]

    cost = step_cost(public_shape(name, "bfloat16"), [(1, 1)])

    assert abs(cost.linear_flops / 2 - stated) <= slack


# gpt-oss: "checkpoint size" of the model card's table 1, in GiB. DeepSeek-V3: a byte for each of
# 671 billion parameters, and one more for each of the embedding's and the head's.
@pytest.mark.parametrize(
    ("name", "stored", "gigabytes"),
    [
        ("DeepSeek-V3", "FP8", 671.0 + 2 * 129_280 * 7_168 / B),
        ("gpt-oss-120b", "MXFP4", 60.8 * 2**30 / B),
        ("gpt-oss-20b", "MXFP4", 12.8 * 2**30 / B),
    ],
)
def test_weights_as_published_take_what_their_files_take(
    name: str, stored: str, gigabytes: float
) -> None:
    shape = public_shape(name, "bfloat16")

    assert shape.published_format == stored
    assert as_published(shape).weight_bytes / B == pytest.approx(gigabytes, rel=0.004)
