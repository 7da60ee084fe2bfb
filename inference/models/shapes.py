"""A model's sizes, read from its modules and its config, as a ``ModelShape``.

What a layer multiplies with comes from its modules, what it keeps for later steps from the config.
It may be loaded, or on torch's meta device: ``config_shapes`` makes one there of a config alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from inference.kernels.block_weights import model_block_format
from inference.kernels.model_layers import attention_module, decoder_layers
from inference.models.weight_matrices import (
    is_head_tied,
    parameter_bytes,
    parameter_count,
    uncounted_parameters,
    weight_matrices,
)
from inference.records.errors import UnsupportedModelError
from inference.records.model import LayerType, ModelShape

LAYER_TYPES = {
    "full_attention": LayerType.FULL,
    "indexed_attention": LayerType.FULL,
    "hybrid": LayerType.FULL,
    "sliding_attention": LayerType.SLIDING,
    "hybrid_sliding": LayerType.SLIDING,
    "chunked_attention": LayerType.CHUNKED,
    "linear_attention": LayerType.RECURRENT,
    "conv": LayerType.RECURRENT,
    "dummy": LayerType.NONE,
}
RECURRENT_FAMILIES = frozenset({"rwkv", "xlstm"})
# How files name the times that layers run for one token.
LOOPS = re.compile(r"(^|_)(loops|num_passes|ut_steps)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _LayerAttention:
    """How one layer attends and what it keeps of a token."""

    kind: LayerType
    row_elements: int
    pair_flops: int
    window: int | None


NOTHING_KEPT = _LayerAttention(kind=LayerType.NONE, row_elements=0, pair_flops=0, window=None)


def model_shape(model: PreTrainedModel) -> ModelShape:
    """Return the sizes of a causal language model, whether its weights are loaded or not.

    Raises:
        UnsupportedModelError: If it is an encoder-decoder, or a size every count needs is missing.
    """
    if getattr(model.config, "is_encoder_decoder", False):
        msg = f"{model.config.model_type} is an encoder-decoder; choose a decoder-only model"
        raise UnsupportedModelError(msg)
    config = model.config.get_text_config(decoder=True)
    decoder = model.get_decoder()
    attention = _attention_per_layer(config, model)
    element_bytes = model.dtype.itemsize
    rows = tuple(layer.row_elements * element_bytes for layer in attention)
    usual = config.per_layer_config[0]  # layers of one model seldom differ in these sizes
    head = model.get_output_embeddings()
    used = [*decoder.parameters(), *(head.parameters() if head is not None else ())]
    weight_bytes = parameter_bytes(model.parameters())
    return ModelShape(
        model_type=str(config.model_type),
        vocab_size=_required(config, "vocab_size"),
        hidden_size=_required(config, "hidden_size"),
        intermediate_size=_size(usual, "intermediate_size"),
        num_hidden_layers=_required(config, "num_hidden_layers"),
        num_attention_heads=_size(usual, "num_attention_heads") or 0,
        num_key_value_heads=_kv_heads(usual),
        head_dim=_key_dim(usual),
        value_head_dim=_size(usual, "v_head_dim") if _is_latent(usual) else None,
        max_position_embeddings=_size(config, "max_position_embeddings"),
        tie_word_embeddings=is_head_tied(model),
        layer_types=tuple(layer.kind for layer in attention),
        sliding_window=next((layer.window for layer in attention if layer.window), None),
        weight_bytes=weight_bytes,
        kv_dtype_bytes=element_bytes,
        kv_bytes_per_token=sum(rows) or None,
        matrices=weight_matrices(model, decoder, config),
        kv_row_bytes_per_layer=rows,
        pair_flops_per_layer=tuple(layer.pair_flops for layer in attention),
        windows_per_layer=tuple(layer.window for layer in attention),
        idle_weight_bytes=weight_bytes - parameter_bytes(used),
        uncounted=_uncounted(config, decoder),
        parameters=parameter_count(model.parameters()),
        activation_dtype_bytes=None if model_block_format(model) is None else element_bytes,
    )


def loops_of(fields: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Return the fields that say how often layers run for one token, where it is more than once."""
    return tuple(
        (name, value)
        for name, value in fields.items()
        if LOOPS.search(name) and isinstance(value, int) and value > 1
    )


def _size(config: PreTrainedConfig, field: str) -> int | None:
    value = getattr(config, field, None)
    return value if isinstance(value, int) and value > 0 else None


def _required(config: PreTrainedConfig, field: str) -> int:
    value = _size(config, field)
    if value is None:
        msg = f"the config of {config.model_type} has no {field}; add it or choose another model"
        raise UnsupportedModelError(msg)
    return value


def _is_latent(config: PreTrainedConfig) -> bool:
    return _size(config, "kv_lora_rank") is not None


def _kv_heads(config: PreTrainedConfig) -> int:
    """Return how many K/V heads a layer's cache keeps, as transformers stores them."""
    heads = _size(config, "num_attention_heads") or 0
    if config.model_type == "falcon":
        # With the newer decoder the shared heads are repeated before they are cached.
        is_shared = getattr(config, "multi_query", False) and not config.new_decoder_architecture
        return 1 if is_shared else heads
    return _size(config, "num_key_value_heads") or heads


def _key_dim(config: PreTrainedConfig) -> int:
    if _is_latent(config):
        return (_size(config, "qk_nope_head_dim") or 0) + (_size(config, "qk_rope_head_dim") or 0)
    heads = _size(config, "num_attention_heads")
    return _size(config, "head_dim") or (_required(config, "hidden_size") // heads if heads else 0)


def _attention_per_layer(config: PreTrainedConfig, model: PreTrainedModel) -> list[_LayerAttention]:
    count = _required(config, "num_hidden_layers")
    layers = decoder_layers(model) or [model.get_decoder()] * count
    to_pictures = _cross_attention_layers(config)
    return [
        NOTHING_KEPT if index in to_pictures else _layer_attention(own, layer, name, window)
        for index, (own, layer, (name, window)) in enumerate(
            zip(config.per_layer_config, layers, _kinds(config, count), strict=False)
        )
    ]


def _cross_attention_layers(config: PreTrainedConfig) -> frozenset[int]:
    """Return the layers that attend to a picture, and to no text."""
    layers = getattr(config, "cross_attention_layers", None)
    return frozenset(layers) if isinstance(layers, list) else frozenset()


def _kinds(config: PreTrainedConfig, count: int) -> list[tuple[str, int | None]]:
    """Return the library's name for what each layer keeps, and the window it attends to."""
    if config.model_type in RECURRENT_FAMILIES:
        return [("linear_attention", None)] * count
    kept, options = get_layer_types_and_kwargs(config)
    own = getattr(config, "layer_types", None) or kept  # what a layer that keeps nothing attends to
    windows = [
        option.get("sliding_window") or _own_window(layer, name)
        for option, name, layer in zip(options, own, config.per_layer_config, strict=False)
    ]
    return list(zip(kept, windows, strict=False))


def _own_window(config: PreTrainedConfig, name: str) -> int | None:
    return _size(config, "sliding_window") if LAYER_TYPES.get(name) is LayerType.SLIDING else None


def _layer_attention(
    config: PreTrainedConfig, layer: nn.Module, name: str, window: int | None
) -> _LayerAttention:
    kind = LAYER_TYPES.get(name, LayerType.FULL)
    module = attention_module(layer)
    if kind is LayerType.RECURRENT or (kind is LayerType.NONE and module is None):
        return _LayerAttention(kind=kind, row_elements=0, pair_flops=0, window=None)
    module = layer if module is None else module
    keys, values = _head_sizes(config, module)
    heads = _size(config, "num_attention_heads") or 0
    return _LayerAttention(
        kind=kind,
        row_elements=0 if kind is LayerType.NONE else _row_elements(config, module, name),
        pair_flops=2 * heads * (keys + values),
        window=window,
    )


def _head_sizes(config: PreTrainedConfig, attention: nn.Module) -> tuple[int, int]:
    """Return the sizes of one key head and one value head as the attention product sees them."""
    if _is_latent(config):
        return _key_dim(config), _size(config, "v_head_dim") or 0
    own = getattr(attention, "head_dim", None)
    keys = own if isinstance(own, int) and own > 0 else _key_dim(config)
    values = getattr(attention, "v_head_dim", None)
    return keys, values if isinstance(values, int) and values > 0 else keys


def _row_elements(config: PreTrainedConfig, attention: nn.Module, name: str) -> int:
    """Return how many elements of K/V one layer's cache keeps for one token."""
    # Of some models only every few layers have an indexer, and the others use what it chose.
    has_indexer = name == "indexed_attention" and getattr(attention, "indexer", None) is not None
    indexer = (_size(config, "index_head_dim") or 0) if has_indexer else 0
    if _is_latent(config):
        # The latent and the rotary key, shared by all heads, are what is cached.
        latent = _required(config, "kv_lora_rank") + (_size(config, "qk_rope_head_dim") or 0)
        return latent + indexer
    projections = (getattr(attention, part, None) for part in ("k_proj", "v_proj"))
    sizes = [one.out_features for one in projections if isinstance(one, nn.Linear)]
    if sizes:
        return sizes[0] + sizes[-1] + indexer  # one projection alone serves as both
    return _kv_heads(config) * sum(_head_sizes(config, attention)) + indexer


def _uncounted(config: PreTrainedConfig, decoder: nn.Module) -> tuple[str, ...]:
    names = set(get_layer_types_and_kwargs(config)[0])
    notes = [
        f"{name} is not in the counted products, so operations are at least these."
        for name in uncounted_parameters(decoder, config)
    ]
    if names & {"linear_attention", "conv", "hybrid", "hybrid_sliding"} or (
        config.model_type in RECURRENT_FAMILIES
    ):
        notes.append(
            "The state of recurrent layers and the scan over it are not counted, so memory, bytes "
            "read and operations are at least these."
        )
    if getattr(config, "kv_sharing_modes", None) is not None and "dummy" in names:
        notes.append(
            "Layers that attend to another layer's K/V are counted as reading none: the K/V read "
            "are at least these, if each layer reads them anew."
        )
    if "indexed_attention" in names:
        notes.append(
            "Sparse attention is counted as if every stored token were attended to: reads and "
            "operations are at most these."
        )
    if config.model_type == "falcon" and _kv_heads(config) > (_size(config, "num_kv_heads") or 0):
        notes.append(
            f"The library stores K/V of all {_kv_heads(config)} query heads; an engine that stores "
            f"the {_size(config, 'num_kv_heads') or 1} that they share keeps fewer."
        )
    notes += [
        f"{name} is {times}: layers run more than once for each token, which is not counted, so "
        "K/V and operations are at least these."
        for name, times in loops_of(vars(config))
    ]
    if to_pictures := len(_cross_attention_layers(config)):
        notes.append(
            f"{to_pictures} of {config.num_hidden_layers} layers attend to a picture and keep no "
            "K/V of the text. The picture's K/V are not counted; a step without a picture leaves "
            "these layers out, so the weights it reads are at most these."
        )
    notes += [
        f"Layers of kind {name} are counted as full attention: their K/V are at most these."
        for name in sorted(names - LAYER_TYPES.keys())
    ]
    return tuple(notes)
