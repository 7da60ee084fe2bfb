"""The kinds of cache a run may use, and what one holds, read off its own tensors.

A layer may keep keys and values that grow with the tokens fed (all of them, or a window's), and
states of a fixed size (recurrent and convolution layers). Only backend.py feeds a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from transformers import (
    Cache,
    DynamicCache,
    PreTrainedConfig,
    PreTrainedModel,
    QuantizedCache,
    StaticCache,
)
from transformers.cache_utils import StaticLayer

from inference.kernels.cache_room import room_of
from inference.models.family_limits import static_obstacle
from inference.records.errors import InputError, first_line
from inference.records.options import CacheKind, CacheOption
from inference.records.steps import CacheState

# Tensors with one row a token on the last axis but one; of a pair, the second is its scale.
TOKEN_TENSORS = ("keys", "values", "indexer_keys", "_quantized_keys", "_quantized_values")
STATE_TENSORS = ("conv_states", "recurrent_states")


def build_cache(model: PreTrainedModel, kind: CacheKind, max_tokens: int | None) -> Cache:
    """Return an empty cache for the model.

    Args:
        model: Whose keys and values it will hold.
        kind: How it stores.
        max_tokens: Tokens a static cache reserves room for, in each row.

    Raises:
        InputError: The library offers no such cache for this model.
    """
    obstacle = cache_obstacle(model, kind)
    if obstacle:
        msg = f"a {kind} cache is not available for {model.config.model_type}: {obstacle}; "
        msg += f"choose the {CacheKind.DYNAMIC} one"
        raise InputError(msg)
    return BUILDERS[kind](model.config, max_tokens or 1)


def cache_options(model: PreTrainedModel) -> tuple[CacheOption, ...]:
    """Return every kind of cache, each with the reason when this model cannot have it."""
    return tuple(CacheOption(kind=kind, reason=cache_obstacle(model, kind)) for kind in CacheKind)


def cache_obstacle(model: PreTrainedModel, kind: CacheKind) -> str:
    """Return why the model cannot have a cache of this kind; an empty string when it can."""
    if kind is CacheKind.STATIC and (known := static_obstacle(model)):
        return known
    try:
        BUILDERS[kind](model.config, 1)
    except (ValueError, KeyError, TypeError, ImportError) as error:
        if "full attention" in str(error):
            return "the library quantises only where every layer attends to the whole context"
        return first_line(error)
    return ""


def cache_state(cache: Cache, row_tokens: Sequence[int]) -> CacheState:
    """Return what the cache holds for rows with this many real tokens each."""
    layers = [LayerBytes(layer, row_tokens) for layer in cache.layers]
    return CacheState(
        tokens_per_layer=tuple(layer.tokens for layer in layers),
        used_bytes=sum(layer.used for layer in layers),
        allocated_bytes=sum(layer.allocated for layer in layers),
        bytes_per_layer=tuple(layer.allocated for layer in layers),
        state_bytes=sum(layer.state for layer in layers),
        state_bytes_per_layer=tuple(layer.state for layer in layers),
        used_bytes_per_layer=_unless_alike(layers),
    )


def _unless_alike(layers: Sequence[LayerBytes]) -> tuple[int, ...]:
    """Return the used bytes of each layer, or nothing where all hold the same."""
    held = {(layer.tokens, layer.allocated, layer.used) for layer in layers}
    return tuple(layer.used for layer in layers) if len(held) > 1 else ()


def together(one: CacheState, other: CacheState) -> CacheState:
    """Return what two caches of one model hold."""

    def added(ours: Sequence[int], theirs: Sequence[int]) -> tuple[int, ...]:
        return tuple(a + b for a, b in zip(ours, theirs, strict=True))

    pairs = zip(one.tokens_per_layer, other.tokens_per_layer, strict=True)
    return CacheState(
        tokens_per_layer=tuple(max(pair) for pair in pairs),
        used_bytes=one.used_bytes + other.used_bytes,
        allocated_bytes=one.allocated_bytes + other.allocated_bytes,
        bytes_per_layer=added(one.bytes_per_layer, other.bytes_per_layer),
        state_bytes=one.state_bytes + other.state_bytes,
        state_bytes_per_layer=added(one.state_bytes_per_layer, other.state_bytes_per_layer),
        used_bytes_per_layer=(
            added(one.stored_bytes_per_layer, other.stored_bytes_per_layer)
            if one.used_bytes_per_layer or other.used_bytes_per_layer
            else ()
        ),
    )


class LayerBytes:
    """The sizes of one cache layer's tensors.

    Attributes:
        tokens: Rows of K/V held for the longest row.
        used: Bytes of the K/V of real tokens, scales of quantised ones included.
        allocated: Bytes of all K/V tensors, with the room behind those that grow in blocks.
        state: Bytes of states, which no token adds to.
    """

    def __init__(self, layer: object, row_tokens: Sequence[int]) -> None:
        self.tokens = self.used = self.allocated = self.state = 0
        # A run asks this of each layer after each step, so a known room is not searched again.
        room = room_of(layer)
        if room is not None:
            columns = room.front_keys.shape[2]
            self.tokens = min(columns, max(row_tokens, default=0))
            column_bytes = room.nbytes // (room.keys.shape[0] * room.capacity)
            self.used = column_bytes * sum(min(tokens, columns) for tokens in row_tokens)
            self.allocated = room.nbytes
            return
        held = vars(layer)
        for name in TOKEN_TENSORS:
            if held.get(name) is not None:
                self._count(_tensors(held[name]), row_tokens)
        for name in STATE_TENSORS:
            self.state += sum(tensor.nbytes for tensor in _tensors(held.get(name)))

    def _count(self, held: Sequence[torch.Tensor], row_tokens: Sequence[int]) -> None:
        """Add one kind of tensors, those of tokens first and then their scales."""
        if not held or not held[0].numel():
            return
        stored, *scales = held
        rows, columns, stored_bytes = stored.shape[0], stored.shape[-2], stored.nbytes
        scale_bytes = sum(scale.nbytes for scale in scales)
        self.tokens = min(columns, max(row_tokens, default=0))
        real = sum(min(tokens, columns) for tokens in row_tokens)
        self.used += stored_bytes // (rows * columns) * real + scale_bytes
        self.allocated += stored_bytes + scale_bytes


def tokens_seen(layer: object) -> int | None:
    """Return how many tokens a growing layer was given, None where it does not count them.

    A static layer counts on the device; reading that would make the step wait, so it is not read.
    """
    if isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):
        return None
    if not any(_tensors(getattr(layer, name, None)) for name in TOKEN_TENSORS):
        return None
    return int(getattr(layer, "get_seq_length")())  # noqa: B009  layers share no typed base


def is_counted_on_device(cache: Cache) -> bool:
    """Tell whether each layer keeps the whole context and counts its columns on the device only."""
    return all(
        type(layer) is StaticLayer
        and isinstance(getattr(layer, "cumulative_length", None), torch.Tensor)
        for layer in cache.layers
    )


def set_columns(cache: Cache, columns: int) -> None:
    """Make a cache that is counted on the device go on behind this many columns."""
    for layer in cache.layers:
        counter: object = getattr(layer, "cumulative_length", None)
        if isinstance(counter, torch.Tensor):
            counter.fill_(columns)


def _tensors(held: object) -> list[torch.Tensor]:
    """Return the tensors in what a layer holds under one name, however it groups them."""
    if isinstance(held, torch.Tensor):
        return [held]
    if isinstance(held, dict):
        held = list(held.values())
    if isinstance(held, list | tuple):
        return [one for one in held if isinstance(one, torch.Tensor)]
    return []


def _dynamic(config: PreTrainedConfig, _max_tokens: int) -> Cache:
    return DynamicCache(config=config)


def _static(config: PreTrainedConfig, max_tokens: int) -> Cache:
    return StaticCache(config=config, max_cache_len=max_tokens)


def _quantised(config: PreTrainedConfig, _max_tokens: int) -> Cache:
    return QuantizedCache(backend="fp8", config=config)  # the others need packages of their own


BUILDERS: dict[CacheKind, Callable[[PreTrainedConfig, int], Cache]] = {
    CacheKind.DYNAMIC: _dynamic,
    CacheKind.STATIC: _static,
    CacheKind.QUANTISED: _quantised,
}
