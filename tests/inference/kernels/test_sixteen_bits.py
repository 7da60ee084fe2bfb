"""Weights, keys and values in 16 bits: each kernel against float64 on the same numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch
from transformers import DynamicCache, PreTrainedModel

from inference.engine.caches import cache_state
from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits
from inference.engine.row_backend import TorchRowBackend
from inference.kernels.install import install, remove
from inference.records.options import Sampling
from inference.records.run import Request
from tests.families import VOCAB
from tests.families import kernel_model as float32_model

pytestmark = pytest.mark.usefixtures("library")

Half = tuple[ctypes.CDLL, torch.dtype]
DTYPES = [torch.float16, torch.bfloat16]


def model_of(dtype: torch.dtype, kind: str = "llama") -> PreTrainedModel:
    return float32_model(kind).to(dtype)  # pyright: ignore[reportArgumentType]  transformers types it for devices


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def tokens(rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    return torch.randint(2, VOCAB, (rows, columns), generator=generator)


@torch.inference_mode()
def logits(model: PreTrainedModel, prompt: torch.Tensor, *, first_padding: int = 0) -> torch.Tensor:
    """Feed a prompt, then four tokens a row; return [step, row, vocab]."""
    cache = DynamicCache(config=model.config)
    mask = torch.ones_like(prompt)
    mask[0, :first_padding] = 0
    fed, found = prompt, []
    for step in range(5):
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -fed.shape[1] :]
        padded = mask if first_padding else None
        output = model(input_ids=fed, attention_mask=padded, position_ids=positions, cache=cache)
        found.append(output.logits[:, -1])
        fed = tokens(len(prompt), 900 + step)[:, :1]
        mask = torch.cat([mask, torch.ones_like(fed)], dim=1)
    return torch.stack(found[1:])


@pytest.mark.parametrize("rows", [1, 3, 4, 9, 16])
@pytest.mark.parametrize(("width", "out_width"), [(64, 64), (576, 49), (1536, 7), (16, 4096)])
def test_a_product_is_that_of_float64(half: Half, rows: int, width: int, out_width: int) -> None:
    library, dtype = half
    generator = torch.Generator().manual_seed(width)
    weights = torch.randn(out_width, width, generator=generator).to(dtype)
    bias = torch.randn(out_width, generator=generator).to(dtype)
    given = torch.randn(rows, width, generator=generator)
    found = torch.full((rows, out_width), torch.nan)
    addresses = [one.data_ptr() for one in (weights, bias, given, found)]

    library.linear(*addresses, rows, width, out_width)

    expected = given.double() @ weights.double().T + bias.double()
    assert relative(found, expected) < 1e-6


def test_every_number_of_16_bits_is_read_as_torch_reads_it(half: Half) -> None:
    """The smallest ones included, whose exponent is that of none."""
    library, dtype = half
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    weights = every[every.isfinite()]
    weights = weights[: len(weights) // 16 * 16].reshape(-1, 16).contiguous()
    given = torch.eye(16)
    found = torch.full((16, len(weights)), torch.nan)
    addresses = [one.data_ptr() for one in (weights, given, found)]

    library.linear(addresses[0], None, addresses[1], addresses[2], 16, 16, len(weights))

    assert torch.equal(found.T, weights.to(torch.float32))


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize(
    ("rows", "columns", "padding"),
    [(1, 3, 0), (1, 515, 0), (3, 255, 0), (16, 30, 0), (3, 300, 280)],
)
def test_decode_rounds_no_more_than_the_library(
    half: Half, kind: str, rows: int, columns: int, padding: int
) -> None:
    library, dtype = half
    model, wide = model_of(dtype, kind), model_of(torch.float64, kind)
    wide.load_state_dict(model.state_dict())
    prompt = tokens(rows, columns)
    exact = logits(wide, prompt, first_padding=padding)
    own = logits(model, prompt, first_padding=padding)
    report = install(model, library)

    found = logits(model, prompt, first_padding=padding)

    assert (report.layers, report.linears) == (3, 22)
    assert relative(found, exact) < 1.2 * relative(own, exact)
    assert relative(found, own) < 4 * torch.finfo(dtype).eps


def test_what_is_stored_is_the_nearest_number_of_16_bits(half: Half) -> None:
    library, dtype = half
    model = model_of(dtype)
    assert install(model, library).layers == 3
    cache = DynamicCache(config=model.config)
    first = model.model.layers[0]

    with torch.inference_mode():
        model(tokens(3, 20), cache=cache)
        fed = tokens(3, 1)
        model(fed, cache=cache)
        state = model.model.embed_tokens(fed).double()
        scale = (state.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps).rsqrt()
        normal = state * scale * first.input_layernorm.weight.double()
        exact = normal @ first.self_attn.v_proj.weight.double().T

    values = cache.layers[0].values
    assert values is not None
    stored = values[:, :, -1].reshape(3, -1)
    assert stored.dtype is dtype
    assert float((stored == exact[:, 0].to(dtype)).float().mean()) > 0.98  # the rest are ties


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bytes_are_those_of_16_bits(dtype: torch.dtype) -> None:
    model = model_of(dtype)
    install(model)
    cache = DynamicCache(config=model.config)

    with torch.inference_mode():
        model(tokens(1, 250), cache=cache)
        for _ in range(4):
            model(tokens(1, 1), cache=cache)
    state = cache_state(cache, [254])

    row_bytes = 3 * 2 * 2 * 16 * 2  # layers, keys and values, heads, head_dim, 16 bits
    assert state.used_bytes == 254 * row_bytes
    assert state.used_bytes == sum(
        one.nbytes for layer in cache.layers for one in (layer.keys, layer.values)
    )
    assert state.allocated_bytes == 256 * row_bytes
    assert all(weight.dtype is dtype for weight in model.parameters())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_greedy_tokens_are_those_of_generate_where_it_is_sure(dtype: torch.dtype) -> None:
    model = model_of(dtype)
    prompt = tokens(1, 12)
    with torch.inference_mode():
        expected = model.generate(
            prompt,
            do_sample=False,
            max_new_tokens=40,
            eos_token_id=None,
            output_scores=True,
            return_dict_in_generate=True,
        )
    install(model)

    found = list(generated(model, tuple(prompt[0].tolist())))
    remove(model)

    theirs = expected.sequences[0, 12:].tolist()
    differs = next(
        (at for at, pair in enumerate(zip(found, theirs, strict=True)) if len({*pair}) > 1), 40
    )
    if differs < 40:
        scores = expected.scores[differs][0].float()
        margin = float(scores[theirs[differs]] - scores[found[differs]])
        assert margin <= 8 * torch.finfo(dtype).eps * float(scores.abs().max())
    assert differs > 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_run_says_what_its_numbers_are(dtype: torch.dtype) -> None:
    report = install(model_of(dtype))

    name = str(dtype).removeprefix("torch.")
    assert f"{name} weights and K/V, float32 arithmetic" in report.text


def generated(model: PreTrainedModel, prompt: tuple[int, ...]) -> Iterator[int | None]:
    limits = GenerationLimits(eos_ids=frozenset(), context_tokens=64)
    engine = Engine(TorchRowBackend(model), HostClock(), limits)
    asked = Request(
        request_id="a",
        prompt_text="",
        prompt_ids=prompt,
        max_new_tokens=40,
        sampling=Sampling(),
    )
    for event in engine.generate([asked], seed=0, zero_s=0.0):
        yield event.rows[0].token_id
