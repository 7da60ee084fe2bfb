"""Kernels beside the library's own code, on this machine and this model, before they are used.

Linear layers are compared one of each size, with as many rows as the kernels treat apart. Decoder
layers are compared one by one, since each has addresses of its own, and the first few together in
every way that a step can come: one row and many, short caches, several chunks of one, padding, a
static cache. Compared are the layer's output and what it stored. The library computes with one
thread here: it waits for all of its threads in every operation, which is slow while others are
busy, as they are when a program starts.

A model in 16 bits is compared with its own code on the same numbers in float32: the kernels round
once, at the end, where the library rounds after every operation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import StaticLayer

from inference.kernels.abi import MOST_ROWS
from inference.kernels.block_weights import BlockLinear
from inference.kernels.build import pool_threads
from inference.kernels.fused_layers import FusedLayers
from inference.kernels.wide_products import wide_product

# Source: STYLE.md (d) 2, the tolerance of float32 by relative norm.
TOLERANCE = 1e-5
# Twice the most that a number loses where it is rounded once to 16 bits.
TOLERANCES = {
    torch.float32: TOLERANCE,
    torch.float16: torch.finfo(torch.float16).eps,
    torch.bfloat16: torch.finfo(torch.bfloat16).eps,
}
# Rows go through the kernels in pairs or fours, the second of which also prefetches.
CHECKED_ROWS = (1, 2, 3, MOST_ROWS)
STATIC_ROOM = 128  # tokens, beside those stored
TOGETHER = 3  # layers of one call

Forward = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One way in which a step can come.

    Attributes:
        rows: Each with one new token.
        past: Tokens stored before it; fewer where the model's context is shorter.
        layers: How many run, from which one on.
        is_padded: The first row has padding on its left.
        is_static: The cache is a static one, with room to spare.
    """

    rows: int
    past: int
    layers: range
    is_padded: bool = False
    is_static: bool = False

    @property
    def text(self) -> str:
        """The case in a few words."""
        cache = " of a static cache" if self.is_static else ""
        padded = ", padded" if self.is_padded else ""
        layers = f"layers {self.layers.start} to {self.layers.stop - 1}"
        return f"{layers}, rows {self.rows}, {self.past + 1} tokens{cache}{padded}"


def cases_for(layers: int, context_tokens: int) -> tuple[_Case, ...]:
    """Return the ways to check a model with this many layers and this context."""
    alone = [_Case(rows=2, past=3, layers=range(index, index + 1)) for index in range(layers)]
    first = range(min(TOGETHER, layers))
    together = [
        _Case(rows=1, past=255, layers=first),  # the new token ends a chunk
        _Case(rows=1, past=2047, layers=first),
        _Case(rows=3, past=300, layers=first, is_padded=True),
        _Case(rows=MOST_ROWS, past=20, layers=first, is_padded=True),
        _Case(rows=1, past=256, layers=first, is_static=True),  # and here begins one
        _Case(rows=2, past=40, layers=first, is_padded=True, is_static=True),
    ]
    return tuple(case for case in (*alone, *together) if case.past < context_tokens)


def linear_disagreement(linear: nn.Linear, kernel: Forward, library: ctypes.CDLL) -> str:
    """Return how a linear layer's kernel differs from its own code; empty when it does not."""
    generator = torch.Generator().manual_seed(linear.in_features)
    for rows in CHECKED_ROWS:
        dtype = torch.float32 if isinstance(linear, BlockLinear) else linear.weight.dtype
        given = torch.randn(rows, linear.in_features, generator=generator).to(dtype)
        with torch.inference_mode():
            with pool_threads(library, 1):
                expected = (
                    linear.forward(given)
                    if dtype is torch.float32
                    else wide_product(given, linear.weight, linear.bias)
                )
            error = _relative(kernel(given), expected)
        if not error <= TOLERANCES[dtype]:
            size = f"{linear.in_features} to {linear.out_features}"
            return f"linear layers of {size} differ from the kernels' by {error:.1e}, rows {rows}"
    return ""


def fused_if_agreeing(
    model: PreTrainedModel, layers: list[nn.Module], library: ctypes.CDLL
) -> FusedLayers | str:
    """Return the layers fused, if they then compute the same; or how they differ, left as is."""
    cases = cases_for(len(layers), _context_tokens(layers[0]))
    with pool_threads(library, 1):
        expected = [_step(model, layers, case, is_wide=True) for case in cases]
    fused = FusedLayers(layers, library)
    for case, own in zip(cases, expected, strict=True):
        fused.time_parts(is_wanted=False)
        computed = _step(model, layers, case, is_wide=False)
        disagreement = _disagreement(computed, own, TOLERANCES[model.dtype])
        if fused.layers_run != len(case.layers):
            disagreement = "its layers do not run in the kernels"
        if disagreement:
            fused.remove()
            return f"{disagreement} ({case.text})"
    return fused


def _disagreement(computed: list[Tensor], expected: list[Tensor], tolerance: float) -> str:
    for error in map(_relative, computed, expected):
        if not error <= tolerance:
            return f"its layers differ from the kernels' by {error:.1e}"
    return ""


def _context_tokens(layer: nn.Module) -> int:
    attention: Any = layer.self_attn
    return attention.config.max_position_embeddings


@torch.inference_mode()
def _step(
    model: PreTrainedModel, layers: list[nn.Module], case: _Case, *, is_wide: bool
) -> list[Tensor]:
    """Return what the layers make of random states, then what the last one stored of them.

    All that is fed is the same on every call, numbers of the model's dtype, whatever code the
    layers run. Where it is wide, they compute with these numbers in float32.
    """
    dtype = torch.float32 if is_wide else model.dtype
    generator = torch.Generator().manual_seed(case.past)
    decoder: Any = model.get_decoder()
    first: Any = layers[case.layers.start]
    cache = _filled(case, first.self_attn, generator, (model.dtype, dtype))
    size = (case.rows, 1, first.self_attn.config.hidden_size)
    state = torch.randn(size, generator=generator).to(model.dtype)
    positions = torch.full((case.rows, 1), case.past)
    padding = case.past // 2 if case.is_padded else 0
    positions[0] -= padding
    angles = decoder.rotary_emb(state, position_ids=positions)
    named = {
        "attention_mask": _mask(case, padding),
        "position_embeddings": tuple(angle.to(dtype) for angle in angles),
        "cache": cache,
        "use_cache": True,
        "position_ids": positions,
    }
    state = state.to(dtype)
    for index in case.layers:
        layer = layers[index]
        if dtype is model.dtype:
            state = layer(state, **named)
        else:  # one layer's weights in float32 at a time
            weights = {name: weight.to(dtype) for name, weight in layer.named_parameters()}
            state = functional_call(layer, weights, (state,), named)
    stored: Any = cache.layers[case.layers[-1]]
    own = slice(0, case.past + 1)
    return [state, stored.keys[:, :, own], stored.values[:, :, own]]


def _filled(
    case: _Case,
    attention: Any,  # noqa: ANN401  each family has its class
    generator: torch.Generator,
    dtypes: tuple[torch.dtype, torch.dtype],
) -> Cache:
    """Return a cache in which every layer of the case holds random keys and values.

    They are numbers of the first dtype, stored in the second, and so is what comes to them.
    """
    rounded, stored = dtypes
    kv_heads = attention.k_proj.out_features // attention.head_dim
    size = (2, case.rows, kv_heads, case.past, attention.head_dim)
    cache = DynamicCache()
    if case.is_static:
        room = case.past + STATIC_ROOM
        cache = Cache(layers=[StaticLayer(room) for _ in range(case.layers.stop)])
    for index in case.layers:
        keys, values = torch.randn(size, generator=generator).to(rounded).to(stored)
        cache.update(keys, values, index)
        if rounded is not stored:
            _round_what_comes(cache.layers[index], rounded)
    return cache


def _round_what_comes(layer: Any, dtype: torch.dtype) -> None:  # noqa: ANN401  layers share no typed base
    """Let a layer of a cache store numbers that the dtype has, whatever it stores them as."""
    own = layer.update

    def update(keys: Tensor, values: Tensor, *args: object, **named: object) -> object:
        rounded = (one.to(dtype).to(one.dtype) for one in (keys, values))
        return own(*rounded, *args, **named)

    layer.update = update


def _mask(case: _Case, padding: int) -> Tensor | None:
    """Return what each row attends to, [row, 1, 1, token]; None where that is everything."""
    if not (case.is_padded or case.is_static):
        return None
    room = STATIC_ROOM - 1 if case.is_static else 0
    mask = torch.ones((case.rows, 1, 1, case.past + 1 + room), dtype=torch.bool)
    mask[0, ..., :padding] = False
    mask[..., case.past + 1 :] = False
    return mask


def _relative(computed: Tensor, expected: Tensor) -> float:
    least = torch.finfo(expected.dtype).tiny  # zeros agree with zeros
    return float((computed.to(expected.dtype) - expected).norm() / expected.norm().clamp(min=least))
