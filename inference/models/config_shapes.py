"""The sizes of a published ``config.json``, without its weights, as a ``ModelShape``.

What the library has a class for is built on torch's meta device, and that class decides; of what it
has none for, or cannot build here, a decoder of the file's sizes is written down, and said so. Code
from a model repository is never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel

from inference.counting.config_files import config_file_fields
from inference.counting.config_sizes import checked_fields
from inference.counting.published_weights import with_published_weights
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
from inference.models.listed_decoder import ACTIVATIONS, UNKNOWN, listed_shape
from inference.models.listed_sizes import name_of, shares_heads, size_of, with_usual_names
from inference.models.published_parts import notes_of_further_tokens, without_zero_experts
from inference.models.shapes import model_shape
from inference.records.errors import InputError, UnsupportedModelError
from inference.records.model import ModelShape

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
HEADS_SHARED = "shares K/V heads where the library's class does not"
NO_CLASS = "has no class of its own in transformers"
MOST_PARAMETERS = 10**15  # the largest published models have a few times 10**12


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
    shape = without_zero_experts(_shape_of_fields(fields, dtype), fields)
    notes = notes_of_further_tokens(text_part(fields) or fields)
    shape = replace(shape, uncounted=(*shape.uncounted, *notes))
    _check_weights(shape)
    return with_published_weights(shape, _quantization_of(fields))


def _quantization_of(fields: Mapping[str, object]) -> object:
    """Return the format in which weights are stored, which a text part may state for itself."""
    inner = text_part(fields) or {}
    return fields.get("quantization_config") or inner.get("quantization_config")


def _shape_of_fields(fields: Mapping[str, object], dtype: str) -> ModelShape:
    _check_total(fields)
    _check_choice(fields)
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
        why = HEADS_SHARED if shares_heads(fields) else LAYERS_DIFFER
        why = UNKNOWN if known_type(fields) is None else why
        listed = _listed(name, fields, dtype, why)
        notes = _notes_of_other_parts(fields, listed)
        return replace(listed, uncounted=(*listed.uncounted, *notes))
    return _library_shape(fields, inner, dtype)


def _listed(name: str, fields: Mapping[str, object], dtype: str, why: str = UNKNOWN) -> ModelShape:
    """Return the shape by the file's sizes; what it does not say is as its type has it, if any."""
    known = known_type(fields)
    own = None if known is None else CONFIG_MAPPING[known]
    tying = own.__dataclass_fields__.get("tie_word_embeddings") if own is not None else None
    is_tied = tying.default is not False if tying is not None else True
    return listed_shape(name, fields, DTYPES[dtype].itemsize, why, is_tied_by_default=is_tied)


def _check_weights(shape: ModelShape) -> None:
    """Raise InputError where a matrix has no weights, as with heads of no width."""
    for matrix in shape.matrices:
        if not matrix.in_features * matrix.out_features * matrix.experts * matrix.copies:
            msg = f"the config's sizes leave {matrix.name} without weights "
            msg += f"({matrix.in_features} x {matrix.out_features}); check head_dim and the others"
            raise InputError(msg)


def _check_total(fields: Mapping[str, object]) -> None:
    """Raise InputError where sizes that are possible one by one are not together."""
    fields = with_usual_names(fields)
    hidden, layers = size_of(fields, "hidden_size") or 0, size_of(fields, "num_hidden_layers") or 0
    width = size_of(fields, "expert_size") or size_of(fields, "intermediate_size") or hidden
    experts = size_of(fields, "num_experts") or 1
    parameters = layers * hidden * (hidden + width * experts)
    if parameters > MOST_PARAMETERS:
        msg = f"the config's sizes give about {parameters:.1e} parameters; no model has more than "
        raise InputError(f"{msg}{MOST_PARAMETERS:.0e}; check hidden_size, layers and experts")


def _check_choice(fields: Mapping[str, object]) -> None:
    """Raise InputError where a token would choose more experts than there are."""
    experts, chosen = size_of(fields, "num_experts"), size_of(fields, "experts_per_token")
    if experts and experts > 1 and chosen and chosen > experts:
        name = name_of(fields, "experts_per_token")
        msg = f"the config's {name} is {chosen}, more than its {experts} experts"
        raise InputError(f"{msg} ({name_of(fields, 'num_experts')}); correct one of them")


def _library_shape(
    fields: Mapping[str, object], inner: Mapping[str, object] | None, dtype: str
) -> ModelShape:
    unstated: tuple[tuple[str, object], ...] = ()
    try:
        config = _read_config(fields)
        unstated = default_sizes(config.get_text_config(decoder=True), fields)
        shape = _shape_of_model(model_on_meta(config, dtype))
    except InputError as error:
        if fields.get("model_type") not in CONFIG_MAPPING and inner is None:
            return _listed(str(fields.get("model_type")), fields, dtype)
        if any(isinstance(fields.get(name), list) for name in BY_LAYER):
            return _listed(str(known_type(fields)), fields, dtype, LAYERS_DIFFER)
        if "encoder-decoder" in str(error):
            raise
        if inner is None:
            return _shape_of_sizes(fields, dtype, error)
        return _text_part_only(fields, inner, dtype, "cannot be built here")
    notes = (*_notes_of_choice(fields), *_notes_of_other_parts(fields, shape))
    notes = (*notes, *(_note_of_default(name, value) for name, value in unstated))
    return replace(shape, uncounted=(*notes, *shape.uncounted))


def _read_config(fields: Mapping[str, object]) -> PreTrainedConfig:
    try:
        return read_config(fields)
    except AttributeError as error:  # a config that is of several parts, none of them a decoder
        msg = f"{known_type(fields)} is built otherwise than a decoder of layers: {reason(error)}"
        raise UnsupportedModelError(f"{msg}; choose another model") from error


def _shape_of_sizes(fields: Mapping[str, object], dtype: str, error: InputError) -> ModelShape:
    """Return the shape by the file's sizes where the class cannot be built; raise why it cannot.

    Raises:
        InputError: The config does not fit its class, or the file does not say enough.
    """
    said = str(error)
    named = (fields[name] for name in ACTIVATIONS if isinstance(fields.get(name), str))
    if not isinstance(error, UnsupportedModelError) or any(str(one) in said for one in named):
        raise error  # a value of the file's is what the class does not know
    try:
        why = f"has a class that cannot be built here ({reason(error)})"
        return _listed(str(known_type(fields)), fields, dtype, why)
    except InputError:
        raise error from None


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
        shape = _listed(name, inner, dtype, NO_CLASS)
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
    """Return whether the file states sizes, of layers or of heads, that the class does not read."""
    if shares_heads(fields):
        return True
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
