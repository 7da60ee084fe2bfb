"""Consecutive decoder layers of the Llama kind as one call: the weights are read once, in order.

The first layer of a stretch runs all of it and the others pass the result on. A layer with a hook
on any of its parts, another attention implementation, another cache or more than one new token a
row is left to the model's own code. One model must not run in two threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module
from transformers import Cache

from inference.kernels.abi import (
    MOST_GROUP,
    MOST_HEAD_DIM,
    MOST_ROWS,
    Layer,
    Step,
    Stored,
)
from inference.kernels.block_weights import PLAIN, other_numbers, weight_numbers
from inference.kernels.cache_room import make_room, stored_tokens
from inference.records.options import CacheKind

# Classes whose forward the kernels compute; see self_check.py for those that only claim to be.
LAYERS = frozenset({"LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer"})
CACHES = frozenset({CacheKind.DYNAMIC, CacheKind.STATIC})  # see cache_room.py
IMPLEMENTATION = "sdpa"
TORCH: Any = torch._C  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  see is_counted
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")
ACTIVATIONS = frozenset({"SiLU", "SiLUActivation"})
LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class _Fed:
    """What a layer's forward was given."""

    state: Tensor
    mask: Tensor | None
    angles: tuple[Tensor, Tensor]
    cache: Cache


def layer_obstacle(layer: nn.Module, lanes: int, numbers: str) -> str:
    """Return why the kernels cannot run this layer; an empty string when they can.

    Args:
        layer: Of any class.
        lanes: Of the kernels.
        numbers: The format of weights that they are for.
    """
    if type(layer).__name__ not in LAYERS:
        return f"{type(layer).__name__} is not of the Llama kind"
    return (
        _kind_obstacle(layer) or _size_obstacle(layer, lanes) or _weights_obstacle(layer, numbers)
    )


def _kind_obstacle(layer: nn.Module) -> str:
    attention: Any = layer.self_attn
    mlp: Any = layer.mlp
    window = getattr(attention, "sliding_window", getattr(attention.config, "sliding_window", None))
    if window is not None:
        return "its layers attend to a window only"
    if attention.config._attn_implementation != IMPLEMENTATION:  # noqa: SLF001  its only name
        return f"its attention is not computed by {IMPLEMENTATION}"
    if type(mlp.act_fn).__name__ not in ACTIVATIONS:
        return f"its activation is {type(mlp.act_fn).__name__}"
    if any(linear.bias is not None for linear in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)):
        return "its MLP has biases"
    if any("forward" in part.__dict__ for part in layer.modules()):
        return "the code of its parts was replaced"
    return ""


def _size_obstacle(layer: nn.Module, lanes: int) -> str:
    attention: Any = layer.self_attn
    mlp: Any = layer.mlp
    sizes = (attention.head_dim, mlp.gate_proj.in_features, mlp.gate_proj.out_features)
    if any(size % lanes for size in sizes):
        return f"its sizes {sizes} are not multiples of {lanes}"
    if attention.head_dim > MOST_HEAD_DIM or attention.num_key_value_groups > MOST_GROUP:
        return "its heads are too large"
    return ""


def _weights_obstacle(layer: nn.Module, numbers: str) -> str:
    attention: Any = layer.self_attn
    mlp: Any = layer.mlp
    linears = [getattr(attention, name, getattr(mlp, name, None)) for name in LINEARS]
    if any(type(linear) not in PLAIN for linear in linears):
        return "its linears are not plain"
    matrices = {id(linear.weight) for linear in linears if isinstance(linear, nn.Linear)}
    for name, weight in layer.named_parameters():
        kept = weight_numbers(weight)
        expected = numbers if id(weight) in matrices else other_numbers(numbers)
        if kept != expected or weight.device.type != "cpu":
            return f"{name} is {kept} on {weight.device}"
        if not weight.is_contiguous():
            return f"{name} is not stored in one piece"
    return ""


class FusedLayers:
    """The model's decoder layers with their forward replaced by one call for a stretch of them."""

    def __init__(self, layers: list[nn.Module], library: ctypes.CDLL) -> None:
        self._modules = layers
        self._library = library
        first: Any = layers[0]
        self._dtype: torch.dtype = first.input_layernorm.weight.dtype
        self._sizes = (Layer * len(layers))(*[_layer_of(layer) for layer in layers])
        self._stored = (Stored * len(layers))()
        self._step = Step()
        counters = torch.zeros(library.counter_bytes(len(layers)) + 64, dtype=torch.uint8)
        self._counters = counters
        self._step.counters = counters.data_ptr() + -counters.data_ptr() % 64
        self._scratch = torch.empty(0)
        self._hooks = [
            [getattr(part, name) for part in layer.modules() for name in HOOKS] for layer in layers
        ]
        self._own: list[Callable[..., Tensor]] = [layer.forward for layer in layers]
        self._config: Any = first.self_attn.config  # the model's own, one for all layers
        self._part_s = (ctypes.c_double * 2)()  # linear operations, attention
        self._timed_layers = self._layers_to_time = 0
        self._handed_on: Tensor | None = None
        self._next = self._end = 0
        for index, layer in enumerate(layers):
            layer.forward = self._forward_of(index)

    def remove(self) -> None:
        """Give the layers their own code back."""
        for layer in self._modules:
            layer.__dict__.pop("forward", None)

    def takes(self, rows: int, cache: CacheKind) -> bool:
        """Return whether decode steps of this many rows, from such a cache, run as one call."""
        return rows <= MOST_ROWS and cache in CACHES

    def time_parts(self, *, is_wanted: bool) -> None:
        """Time linear operations and attention from here on, at the cost of a few clock reads."""
        self._part_s[:] = [0.0, 0.0]
        self._timed_layers = 0
        self._layers_to_time = len(self._modules) - len(self.watched)
        self._step.part_s = ctypes.addressof(self._part_s) if is_wanted else None

    @property
    def part_seconds(self) -> tuple[float, float] | None:
        """Seconds in linear operations, norms included, and in attention, since they are timed.

        None unless every layer that was not watched then ran once in the kernels meanwhile.
        """
        if self._timed_layers != self._layers_to_time:
            return None
        return self._part_s[0], self._part_s[1]

    @property
    def layers_run(self) -> int:
        """Layers that ran in the kernels since ``time_parts``, each once a step."""
        return self._timed_layers

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The layers, in order."""
        return tuple(self._modules)

    @property
    def watched(self) -> tuple[nn.Module, ...]:
        """The layers with a hook on any part, which run as the model's own code."""
        return tuple(
            layer for layer, hooks in zip(self._modules, self._hooks, strict=True) if any(hooks)
        )

    def _forward_of(self, index: int) -> Callable[..., Tensor]:
        own = self._own[index]

        def forward(hidden_states: Tensor, *args: object, **named: object) -> Tensor:
            if torch.compiler.is_compiling():
                return own(hidden_states, *args, **named)
            if hidden_states is self._handed_on and index == self._next:
                self._next = index + 1
                if self._next == self._end:
                    self._handed_on = None
                return hidden_states
            self._handed_on = None
            fed = None if args else self._fed(hidden_states, named)
            end = index if fed is None else self._make_room(index, fed)
            if fed is None or end == index:
                return own(hidden_states, *args, **named)
            return self._run(fed, index, end)

        return forward

    def _fed(self, state: Tensor, named: dict[str, Any]) -> _Fed | None:
        """Return what the kernels need of a call; None when it is not for them."""
        mask, angles = named.get("attention_mask"), named.get("position_embeddings")
        cache = named.get("cache", named.get("past_key_values"))
        if not isinstance(cache, Cache) or angles is None or not _is_step(state, self._dtype):
            return None
        if _is_watched() or self._config._attn_implementation != IMPLEMENTATION:  # noqa: SLF001  its only name
            return None
        if mask is not None and not _is_plain_mask(mask):
            return None
        return _Fed(state, mask, angles, cache)

    def _make_room(self, index: int, fed: _Fed) -> int:
        """Store where each layer's new token goes; return the layer after the last that can run."""
        held = fed.cache.layers
        tokens = stored_tokens(held[index], self._dtype) if index < len(held) else None
        if tokens is None:
            return index
        mask, mask_row = None, 0
        if fed.mask is not None:
            if fed.mask.shape[-1] <= tokens:
                return index
            mask = fed.mask.data_ptr()
            mask_row = fed.mask.stride(0) if fed.mask.shape[0] > 1 else 0
        last = min(len(held), len(self._modules))
        end = index
        while end < last and not any(self._hooks[end]) and self._holds(held[end], tokens):
            keys, values = make_room(held[end], tokens + 1)
            place = self._stored[end]
            place.keys, place.values = keys.data_ptr(), values.data_ptr()
            place.key_row, place.key_head = keys.stride(0), keys.stride(1)
            place.value_row, place.value_head = values.stride(0), values.stride(1)
            place.tokens, place.mask, place.mask_row = tokens + 1, mask, mask_row
            end += 1
        return end

    def _holds(self, layer: Any, tokens: int) -> bool:  # noqa: ANN401  layers share no typed base
        return stored_tokens(layer, self._dtype) == tokens

    def _run(self, fed: _Fed, index: int, end: int) -> Tensor:
        state = fed.state.to(torch.float32).contiguous()
        rows = state.shape[0]
        output = torch.empty_like(state)
        cosines, sines = (angle.to(torch.float32).contiguous() for angle in fed.angles)
        step = self._step
        step.rows, step.layers = rows, end - index
        step.input, step.output = state.data_ptr(), output.data_ptr()
        step.cosines, step.sines = cosines.data_ptr(), sines.data_ptr()
        step.angle_row = cosines.shape[-1] if cosines.shape[0] > 1 else 0
        step.scratch = self._scratch_for(index, rows)
        self._library.decode_layers(
            ctypes.byref(self._sizes, index * ctypes.sizeof(Layer)),
            ctypes.byref(self._stored, index * ctypes.sizeof(Stored)),
            ctypes.byref(step),
        )
        output = output.to(self._dtype)
        self._timed_layers += end - index
        self._next, self._end = index + 1, end
        self._handed_on = output if end > index + 1 else None
        return output

    def _scratch_for(self, index: int, rows: int) -> int:
        """Return the address of enough scratch memory, on a cache line."""
        tokens = self._stored[index].tokens
        floats = self._library.scratch_floats(ctypes.byref(self._sizes), rows, tokens) + 16
        if self._scratch.numel() < floats:
            self._scratch = torch.empty(floats + floats // 4)
        address = self._scratch.data_ptr()
        return address + -address % 64


def _is_step(state: Tensor, dtype: torch.dtype) -> bool:
    """True for one new token in each of a few rows, with nothing to differentiate."""
    return (
        state.dim() == 3  # noqa: PLR2004  [row, query, hidden]
        and state.shape[1] == 1
        and state.shape[0] <= MOST_ROWS
        and state.dtype is dtype
        and state.device.type == "cpu"
        and not (torch.is_grad_enabled() and state.requires_grad)
    )


def _is_plain_mask(mask: Tensor) -> bool:
    """True for [row, 1, 1, token], or one row for all, whose tokens lie side by side."""
    return mask.dtype is torch.bool and mask.shape[1:3] == (1, 1) and mask.stride(-1) == 1


def is_counted() -> bool:
    """True while somebody counts or traces the model's operations."""
    return torch.compiler.is_compiling() or TORCH._len_torch_dispatch_stack() > 0  # noqa: SLF001  torch offers no other way to ask


def _is_watched() -> bool:
    """True while somebody counts, traces or intercepts what the model does."""
    return (
        is_counted()
        or TORCH._len_torch_function_stack() > 0  # noqa: SLF001  likewise
        or any(getattr(every_module, name) for name in GLOBAL_HOOKS)
    )


def _layer_of(layer: nn.Module) -> Layer:
    attention: Any = layer.self_attn
    mlp: Any = layer.mlp
    norm: Any = layer.input_layernorm
    mlp_norm: Any = layer.post_attention_layernorm
    head_dim = attention.head_dim
    q, k, v, o = attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj
    return Layer(
        hidden=q.in_features,
        heads=q.out_features // head_dim,
        kv_heads=k.out_features // head_dim,
        head_dim=head_dim,
        intermediate=mlp.gate_proj.out_features,
        eps=norm.variance_epsilon,
        scale=attention.scaling,
        norm=norm.weight.data_ptr(),
        q=q.weight.data_ptr(),
        k=k.weight.data_ptr(),
        v=v.weight.data_ptr(),
        q_bias=address_of(q.bias),
        k_bias=address_of(k.bias),
        v_bias=address_of(v.bias),
        o=o.weight.data_ptr(),
        o_bias=address_of(o.bias),
        mlp_norm=mlp_norm.weight.data_ptr(),
        gate=mlp.gate_proj.weight.data_ptr(),
        up=mlp.up_proj.weight.data_ptr(),
        down=mlp.down_proj.weight.data_ptr(),
    )


def address_of(tensor: Tensor | None) -> int | None:
    """Return where a tensor's numbers are; None for none."""
    return None if tensor is None else tensor.data_ptr()
