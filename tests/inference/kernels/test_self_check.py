"""A kernel that is wrong in one way only is found out before it is used, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaMLP

from inference.kernels.build import opened
from inference.kernels.description import disagreement
from inference.kernels.install import install, remove
from tests.families import VOCAB, fresh_model, tiny_model
from tests.tiny_model import tiny_config

pytestmark = pytest.mark.usefixtures("library")

CompileChanged = Callable[..., Path]


def llama(dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    config = tiny_config()
    config.update(
        {
            "vocab_size": VOCAB,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 4,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 4096,
            "initializer_range": 0.2,
        }
    )
    return fresh_model(config, dtype)


@pytest.mark.parametrize(
    ("name", "words", "instead", "sentence"),
    [
        pytest.param(
            "kernels_attention.h",
            "expf(chunk[dim] - most)",
            "1.0f",
            "rows 1, 2048 tokens",
            id="chunks are joined unscaled",
        ),
        pytest.param(
            "kernels.c", "if (!seen[token])", "if (0)", "padded", id="padding is attended to"
        ),
        pytest.param(
            "kernels_products.h",
            "input + token * width;",
            "input + (token < 8 ? token : 0) * width;",
            "rows 16",
            id="rows from the ninth on are the first",
        ),
        pytest.param(
            "kernels.c",
            "row * stored->key_row + head",
            "row * (stored->key_row == 2 * 168 * 16 ? 0 : stored->key_row) + head",
            "static cache, padded",
            id="a static cache has one row",
        ),
        pytest.param(
            "kernels.c",
            "const Layer *layer = layers + index;",
            "const Layer *layer = layers;",
            "layers 0 to 2",
            id="one layer's weights for all",
        ),
        pytest.param(
            "kernels.c",
            "keep_values(layer, stored, shared, rows, first, last);",
            "keep_values(layer, stored, shared, rows, first, last - 1);",
            "layers 0 to 0",
            id="a value is not stored",
        ),
    ],
)
def test_fused_layers_that_are_wrong_are_not_used(
    compile_changed: CompileChanged, name: str, words: str, instead: str, sentence: str
) -> None:
    model = llama()

    report = install(model, opened(compile_changed(name, words, instead)))

    assert report.layers == 0
    assert report.reason.startswith("its layers differ from the kernels' by ")
    assert sentence in report.reason


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("name", "words", "instead"),
    [
        pytest.param("kernels_kept.h", "kept to_kept(float value) {",
                     "kept to_kept(float value) {\n    value *= 1.02f;", id="stored larger"),
        pytest.param("kernels.c", "if (!seen[token])", "if (0)", id="padding is attended to"),
        pytest.param("kernels_products.h", "sum += from_kept(bias[column])", "sum += bias[column]",
                     id="a bias is read as an integer"),
    ],
)  # fmt: skip
def test_fused_layers_of_16_bits_that_are_wrong_are_not_used(
    compile_changed: CompileChanged, dtype: torch.dtype, name: str, words: str, instead: str
) -> None:
    model = llama(dtype)
    numbers = str(dtype).removeprefix("torch.")
    for layer in model.model.layers:
        bias = torch.full((layer.self_attn.q_proj.out_features,), 0.5, dtype=dtype)
        layer.self_attn.q_proj.bias = torch.nn.Parameter(bias)

    report = install(model, opened(compile_changed(name, words, instead, numbers), numbers))

    assert report.layers == 0
    assert report.reason.startswith("its layers differ from the kernels' by ")


def test_linear_layers_are_left_out_by_their_size(compile_changed: CompileChanged) -> None:
    model = fresh_model(tiny_model("gpt_neox").config, torch.float32)
    linears = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    without_bias = [linear for linear in linears if "bias" not in dict(linear.named_parameters())]
    for linear in linears:
        if linear not in without_bias:
            torch.nn.init.ones_(linear.bias)
    words = "project_back(weights, bias, input, width, NULL, out_width"
    broken = opened(compile_changed("kernels.c", words, words.replace("bias", "NULL")))

    report = install(model, broken)

    assert report.linears == len(without_bias) > 0
    assert all("forward" in module.__dict__ for module in without_bias)
    assert "linear layers of 32 to 96 differ from the kernels' by " in report.reason


@pytest.mark.parametrize(
    ("words", "instead", "sentence"),
    [
        pytest.param(
            "scores[i] > best[at - 1]; at--",
            "scores[i] >= best[at - 1]; at--",
            "the highest of 5 scores are not those",
            id="order of equal scores",
        ),
        pytest.param(
            "all(-87.0f); /*",
            "all(-8.0f); /*",
            "scores differ from torch's by ",
            id="small shares are dropped",
        ),
    ],
)
def test_a_description_that_is_wrong_is_not_used(
    compile_changed: CompileChanged, words: str, instead: str, sentence: str
) -> None:
    broken = opened(compile_changed("kernels_choice.h", words, instead))

    assert sentence in disagreement(broken)


def test_parts_with_code_of_somebody_elses_keep_it() -> None:
    model = llama()
    mlp = model.model.layers[1].mlp
    head = model.get_output_embeddings()
    mlp.forward = lambda state: LlamaMLP.forward(mlp, state)
    head.forward = lambda state: torch.nn.Linear.forward(head, state)
    own = head.forward

    report = install(model)

    assert report.layers == 0
    assert report.reason == "the code of its parts was replaced"
    assert head.forward is own
    remove(model)
    assert head.forward is own


def test_layers_that_somebody_looks_into_are_not_called_checked() -> None:
    model = llama()
    handle = model.model.layers[0].mlp.register_forward_hook(lambda *_: None)

    report = install(model)
    handle.remove()

    assert report.layers == 0
    assert "do not run in the kernels" in report.reason
