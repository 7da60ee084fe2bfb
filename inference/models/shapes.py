"""A model's sizes, read from its modules and its config, as a ``ModelShape``.

What a layer multiplies with comes from its modules, what it keeps for later steps from the config.
``shape_of_config`` builds the model on torch's meta device: sizes without memory, however large.
Code from a model repository is never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from inference.counting.config_files import config_file_fields
from inference.counting.config_sizes import checked_fields
from inference.counting.published_weights import with_published_weights
from inference.kernels.model_layers import attention_module, decoder_layers
from inference.models.config_models import (
    check_dtype,
    check_is_decoder,
    default_sizes,
    model_on_meta,
    read_config,
    text_part,
)
from inference.models.devices import DTYPES
from inference.models.library_configs import architecture, is_library_class, known_type, reason
from inference.models.listed_decoder import UNKNOWN, listed_shape
from inference.models.listed_sizes import size_of
from inference.models.weight_matrices import (
    is_head_tied,
    parameter_bytes,
    parameter_count,
    uncounted_parameters,
    weight_matrices,
)
from inference.records.errors import InputError, UnsupportedModelError
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
# Fields of repositories' own classes that give each layer sizes of its own.
OTHER_PARTS = ("vision_config", "audio_config", "visual", "vision_tower")
LISTS_BY_LAYER = (
    "num_key_value_heads_per_layer",
    "num_attention_heads_per_layer",
    "ffn_multipliers",
    "block_configs",
)
# Sizes of which a file may have one for each layer where the library's class has one for all.
BY_LAYER = ("num_attention_heads", "num_key_value_heads", "intermediate_size", "head_dim")
LAYERS_DIFFER = "has layers that differ where those of the library's class are alike"
NO_CLASS = "has no class of its own in transformers"
MOST_PARAMETERS = 10**15  # the largest published models have a few times 10**12


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
    )


def shape_of_config(source: Path | str | Mapping[str, object], dtype: str) -> ModelShape:
    """Return the sizes of the model that a ``config.json`` describes, without its weights.

    What the library has a class for is built on the meta device, and that class decides; of what it
    has none for, or cannot build here, a decoder of the file's sizes is written down, and said so.

    Args:
        source: The file, a folder that holds it, or its content.
        dtype: Of weights and K/V: float64, float32, bfloat16 or float16.

    Raises:
        InputError: If the config cannot be read, lacks a size, or has one that is not above zero.
        UnsupportedModelError: If the architecture is unknown and the file does not say enough, or
            is not a causal language model.
    """
    check_dtype(dtype)
    fields = checked_fields(
        source if isinstance(source, Mapping) else config_file_fields(Path(source))
    )
    return with_published_weights(_shape_of_fields(fields, dtype), _quantization_of(fields))


def _quantization_of(fields: Mapping[str, object]) -> object:
    """Return the format in which weights are stored, which a text part may state for itself."""
    inner = text_part(fields) or {}
    return fields.get("quantization_config") or inner.get("quantization_config")


def _shape_of_fields(fields: Mapping[str, object], dtype: str) -> ModelShape:
    _check_total(fields)
    check_is_decoder(fields)
    model_type = fields.get("model_type")
    inner = text_part(fields)
    if not isinstance(model_type, str) and not architecture(fields):
        if inner is None:
            msg = "the config has no model_type; give a config.json as published with a model"
            raise InputError(msg)
        return _text_part_only(fields, inner, dtype, "names no model_type of its own")
    if known_type(fields) is None or _has_lists_the_library_ignores(fields):
        if inner is not None:
            return _text_part_only(fields, inner, dtype, "is not one that transformers knows")
        name = model_type if isinstance(model_type, str) else architecture(fields)
        why = UNKNOWN if known_type(fields) is None else LAYERS_DIFFER
        return listed_shape(name, fields, DTYPES[dtype].itemsize, why)
    return _library_shape(fields, inner, dtype)


def _check_total(fields: Mapping[str, object]) -> None:
    """Raise InputError where sizes that are possible one by one are not together."""
    hidden, layers = size_of(fields, "hidden_size") or 0, size_of(fields, "num_hidden_layers") or 0
    width = size_of(fields, "expert_size") or size_of(fields, "intermediate_size") or hidden
    experts = size_of(fields, "num_experts") or 1
    parameters = layers * hidden * (hidden + width * experts)
    if parameters > MOST_PARAMETERS:
        msg = f"the config's sizes give about {parameters:.1e} parameters; no model has more than "
        raise InputError(f"{msg}{MOST_PARAMETERS:.0e}; check hidden_size, layers and experts")


def _library_shape(
    fields: Mapping[str, object], inner: Mapping[str, object] | None, dtype: str
) -> ModelShape:
    unstated: tuple[tuple[str, object], ...] = ()
    try:
        config = read_config(fields)
        unstated = default_sizes(config.get_text_config(decoder=True), fields)
        shape = _shape_of_model(model_on_meta(config, dtype))
    except InputError as error:
        if fields.get("model_type") not in CONFIG_MAPPING and inner is None:
            return listed_shape(str(fields.get("model_type")), fields, DTYPES[dtype].itemsize)
        if any(isinstance(fields.get(name), list) for name in BY_LAYER):
            return listed_shape(
                str(known_type(fields)), fields, DTYPES[dtype].itemsize, LAYERS_DIFFER
            )
        if inner is None or "encoder-decoder" in str(error):
            raise
        return _text_part_only(fields, inner, dtype, "cannot be built whole here")
    notes = (*_notes_of_choice(fields), *_notes_of_other_parts(fields, shape))
    notes = (*notes, *(_note_of_default(name, value) for name, value in unstated))
    return replace(shape, uncounted=(*notes, *shape.uncounted))


def _shape_of_model(model: PreTrainedModel) -> ModelShape:
    try:
        return model_shape(model)
    except (AttributeError, KeyError, ValueError) as error:
        msg = f"{model.config.model_type} is built otherwise than a decoder of layers: "
        raise UnsupportedModelError(f"{msg}{reason(error)}; choose another model") from error


def _note_of_default(name: str, value: object) -> str:
    return f"The file states no {name} for its text part; its class's default, {value}, is counted."


def _notes_of_other_parts(fields: Mapping[str, object], shape: ModelShape) -> tuple[str, ...]:
    """Return what is and is not counted of a multimodal model's parts that are not text."""
    if shape.idle_weight_bytes:
        return (
            "Steps are of the text part only. Weights of other parts (pictures, sound, further "
            f"tokens), {shape.idle_weight_bytes:,} bytes, are in memory and no text step reads "
            "them.",
        )
    if text_part(fields) is None and not any(name in fields for name in OTHER_PARTS):
        return ()
    return (
        "This is the model's text part only: the weights of its other parts (pictures, sound) are "
        "not counted, so memory is at least this.",
    )


def _text_part_only(
    fields: Mapping[str, object], inner: Mapping[str, object], dtype: str, why: str
) -> ModelShape:
    whole = str(fields.get("model_type") or architecture(fields) or "the model")
    if "model_type" not in inner and known_type(inner) is None:
        default = _default_text_type(whole)
        if default:
            inner = {**inner, "model_type": default}
    try:
        shape = _shape_of_fields(inner, dtype)
    except UnsupportedModelError:
        # The library has the part's sizes, but no class that generates with it alone.
        if known_type(inner) is None:
            raise
        name = str(inner.get("model_type"))
        shape = listed_shape(name, inner, DTYPES[dtype].itemsize, NO_CLASS)
    note = (
        f"This is the text part of {whole!r} alone, since the whole {why}: the weights of its "
        "other parts (pictures, sound) are not counted, so memory is at least this."
    )
    return replace(shape, uncounted=(note, *shape.uncounted))


def _default_text_type(model_type: str) -> str | None:
    """Return the type of the text part that a multimodal type of the library has by default."""
    if model_type not in CONFIG_MAPPING:
        return None
    parts: Mapping[str, object] = getattr(CONFIG_MAPPING[model_type], "sub_configs", {})
    return getattr(parts.get("text_config"), "model_type", None) or None


def _has_lists_the_library_ignores(fields: Mapping[str, object]) -> bool:
    """Return whether the file gives layers sizes of their own that the library's class has not."""
    own = CONFIG_MAPPING[str(known_type(fields))].__dataclass_fields__
    return any(name in fields and name not in own for name in LISTS_BY_LAYER)


def _notes_of_choice(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return what was made of a file whose type and architecture are not one of the library's."""
    stated, used, named = fields.get("model_type"), known_type(fields), architecture(fields)
    notes: list[str] = []
    if stated != used:
        notes.append(f"model_type is {stated!r}; counted as {used}, the library's type of {named}.")
    elif "auto_map" in fields and named and not is_library_class(named):
        notes.append(
            f"The file names a class of its repository, {named}; the library's class for {used} is "
            "counted, and what else that one may have is not."
        )
    return tuple(notes)


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
    indexer = (_size(config, "index_head_dim") or 0) if name == "indexed_attention" else 0
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
        f"{name} is not in the counted products." for name in uncounted_parameters(decoder, config)
    ]
    if names & {"linear_attention", "conv", "hybrid", "hybrid_sliding"} or (
        config.model_type in RECURRENT_FAMILIES
    ):
        notes.append("The state of recurrent layers: its bytes and the scan over it.")
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
