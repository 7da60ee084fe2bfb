"""Weights in blocks: the kernels against float64 on the numbers that GGUF's own reader finds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from transformers import DynamicCache, PreTrainedModel

from inference.kernels.block_weights import BlockLinear, model_block_format, widened
from inference.kernels.build import opened
from inference.kernels.install import install, remove
from inference.models.block_loading import check_blocks, keep_in_blocks, quantised
from inference.records.block_formats import BlockFormat
from tests.families import VOCAB, fresh_model, kernel_model

pytestmark = pytest.mark.usefixtures("library")

Variant = tuple[ctypes.CDLL, BlockFormat]
GGML = {one: GGMLQuantizationType[one.name] for one in BlockFormat}


def exact(blocks: torch.Tensor, block_format: BlockFormat) -> torch.Tensor:
    """Return the numbers of blocks as GGUF's own package reads them, in float64."""
    numbers = dequantize(blocks.detach().numpy(), GGML[block_format])
    return torch.from_numpy(numbers).double()


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def tokens(rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    return torch.randint(2, VOCAB, (rows, columns), generator=generator)


def block_model(block_format: BlockFormat, kind: str = "llama") -> PreTrainedModel:
    model = kernel_model(kind)
    check_blocks(model, "tiny", block_format)
    keep_in_blocks(model, block_format)
    return model


def exact_model(model: PreTrainedModel, kind: str = "llama") -> PreTrainedModel:
    """Return the library's own model in float64 with the numbers of the other one's blocks."""
    wide = fresh_model(kernel_model(kind).config, torch.float64)
    block_format = model_block_format(model)
    assert block_format is not None
    state = {
        name: exact(weight, block_format) if weight.dtype is torch.uint8 else weight.double()
        for name, weight in model.state_dict().items()
    }
    wide.load_state_dict(state)
    return wide


@torch.inference_mode()
def logits(model: PreTrainedModel, prompt: torch.Tensor) -> torch.Tensor:
    """Feed a prompt, then three tokens a row; return [step, row, vocab], the prefill's first."""
    cache = DynamicCache(config=model.config)
    found = [model(prompt, cache=cache).logits[:, -1]]
    for step in range(3):
        fed = tokens(len(prompt), 900 + step)[:, :1]
        found += [model(fed, cache=cache).logits[:, -1]]
    return torch.stack(found)


def test_every_block_is_read_as_ggufs_own_reader_reads_it(block_variant: Variant) -> None:
    """Every byte a block can have, with scales that are small, large and negative."""
    library, block_format = block_variant
    generator = torch.Generator().manual_seed(3)
    size = (97, 3 * block_format.block_bytes)
    blocks = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
    each = blocks.view(-1, block_format.block_bytes)
    scales = (
        torch.randn(len(each), 1, generator=generator)
        * 10.0 ** torch.arange(-6, 4).repeat(30)[: len(each), None]
    )
    each[:, :2] = scales.half().view(torch.uint8)
    if block_format is BlockFormat.Q4_1:
        each[:, 2:4] = torch.randn(len(each), 1, generator=generator).half().view(torch.uint8)
    found = torch.full((97, 96), torch.nan)

    library.widen(blocks.data_ptr(), 97, 96, found.data_ptr())

    expected = exact(blocks, block_format)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        widened(blocks, block_format).double(), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("rows", [1, 3, 4, 9, 16])
@pytest.mark.parametrize(("width", "out_width"), [(64, 64), (576, 49), (1536, 7), (32, 4096)])
def test_a_product_is_that_of_float64(
    block_variant: Variant, rows: int, width: int, out_width: int
) -> None:
    library, block_format = block_variant
    generator = torch.Generator().manual_seed(width)
    weight = quantised(torch.randn(out_width, width, generator=generator), block_format)
    bias = torch.randn(out_width, generator=generator)
    given = torch.randn(rows, width, generator=generator)
    found = torch.full((rows, out_width), torch.nan)
    addresses = [one.data_ptr() for one in (weight, bias, given, found)]

    library.linear(*addresses, rows, width, out_width)

    expected = given.double() @ exact(weight, block_format).T + bias.double()
    assert relative(found, expected) < 1e-6


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (1, 515), (3, 255), (16, 30)])
def test_a_model_computes_what_the_library_does_of_the_same_numbers(
    block_variant: Variant, kind: str, rows: int, columns: int
) -> None:
    library, block_format = block_variant
    model = block_model(block_format, kind)
    prompt = tokens(rows, columns)
    expected = logits(exact_model(model, kind), prompt)
    without_kernels = logits(model, prompt)

    report = install(model, library)
    found = logits(model, prompt)

    assert (report.layers, report.linears) == (3, 22)
    assert f"{block_format} weights, float32 arithmetic" in report.text
    assert relative(without_kernels, expected) < 1e-5
    assert relative(found, expected) < 1e-5


def test_greedy_tokens_are_those_of_generate_on_the_same_numbers() -> None:
    model = block_model(BlockFormat.Q4_1)
    prompt = tokens(1, 12)
    asked = {"do_sample": False, "max_new_tokens": 30, "eos_token_id": None}
    expected = exact_model(model).generate(prompt, **asked)
    assert install(model).layers == 3

    found = model.generate(prompt, **asked)

    assert torch.equal(found, expected)


def test_layers_with_one_matrix_in_another_format_are_not_fused() -> None:
    model = block_model(BlockFormat.Q8_0)
    other = kernel_model().model.layers[1].mlp.up_proj
    model.model.layers[1].mlp.up_proj = other
    prompt = tokens(1, 9)
    expected = logits(model, prompt)

    report = install(model)

    assert (report.layers, report.linears) == (0, 21)
    assert "mlp.up_proj.weight is float32 on cpu" in report.reason
    assert relative(logits(model, prompt), expected) < 1e-5


@pytest.mark.parametrize(
    ("block_format", "words", "instead"),
    [
        pytest.param("q8_0", "lanes scale = half_at(block);", "lanes scale = all(1);", id="scale"),
        pytest.param("q8_0", "block + 2 + part", "block + 1 + part", id="place"),
        pytest.param("q4_0", "all(-8.0f)", "all(-7.0f)", id="middle"),
        pytest.param("q4_1", "half_at(block + 2)", "half_at(block)", id="least"),
        pytest.param("q4_1", "{_mm_and_si128(both, lower)", "{both", id="halves"),
    ],
)  # fmt: skip
def test_blocks_that_are_read_wrongly_are_found_out(
    compile_changed: Callable[..., Path], block_format: str, words: str, instead: str
) -> None:
    model = block_model(BlockFormat(block_format))
    path = compile_changed("kernels_blocks.h", words, instead, block_format)

    report = install(model, opened(path, block_format))

    assert not report.is_used
    assert "differ from the kernels' by " in report.text


def test_the_models_code_comes_back() -> None:
    model = block_model(BlockFormat.Q8_0)
    install(model)

    remove(model)

    assert not any("forward" in module.__dict__ for module in model.modules())
    assert sum(isinstance(module, BlockLinear) for module in model.modules()) == 22
