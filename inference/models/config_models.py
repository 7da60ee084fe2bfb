"""A published ``config.json`` turned into a model without weights, on torch's meta device.

Nothing is downloaded and no code from a model repository is run. Of a multimodal model the whole is
built where the library can; where it cannot, its text part alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES,
)

from inference.models.devices import DTYPES
from inference.models.library_configs import architecture, known_type, library_config, reason
from inference.models.listed_sizes import NAMES
from inference.records.errors import InputError, UnsupportedModelError

# What every count needs, and the words in the names that families give it in their configs.
NEEDED_SIZES = {"hidden_size": "hidden|model|emb", "num_hidden_layers": "layer"}
USUAL_SIZES = {
    "vocab_size": "vocab",
    "num_attention_heads": "head",
    "intermediate_size": "intermediate|ffn|inner|expan",
}
# Where multimodal models keep the config of their text part.
TEXT_PARTS = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "thinker_config",
)
ENCODERS = ("ForMaskedLM", "ForPreTraining")
UNUSABLE = (
    ValueError,
    RuntimeError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    ZeroDivisionError,
    ImportError,
    AssertionError,
    NotImplementedError,
)


def read_config(fields: Mapping[str, object]) -> PreTrainedConfig:
    """Return the library's config for these fields, whose type it knows.

    Raises:
        InputError: If a size is missing, or a field does not fit.
    """
    model_type = known_type(fields) or str(fields.get("model_type"))
    config = library_config(model_type, fields)
    text = config.get_text_config(decoder=True)
    _check_needed_sizes(text, fields)
    _check_groups(text)
    if text_part(fields) is not None and "tie_word_embeddings" not in fields:
        # A wrapper's default is not that of its text part.
        config.tie_word_embeddings = getattr(text, "tie_word_embeddings", False)
    return config


def text_part(fields: Mapping[str, object]) -> dict[str, object] | None:
    """Return the fields of a multimodal model's text part; None where there is no such part."""
    for name in TEXT_PARTS:
        part = fields.get(name)
        if isinstance(part, Mapping):
            inner = text_part(part) or dict(part)
            for shared in ("tie_word_embeddings", "quantization_config"):
                if shared in fields:
                    inner.setdefault(shared, fields[shared])
            return inner
    return None


def model_on_meta(config: PreTrainedConfig, dtype: str) -> PreTrainedModel:
    """Return the causal language model of this config, its parameters without memory.

    Raises:
        InputError: If the dtype is not one of ``DTYPES``.
        UnsupportedModelError: If no causal language model can be built from it.
    """
    check_dtype(dtype)
    if config.is_encoder_decoder:
        msg = f"{config.model_type} is an encoder-decoder; choose a decoder-only model"
        raise UnsupportedModelError(msg)
    is_causal = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    build = AutoModelForCausalLM if is_causal else AutoModelForImageTextToText
    try:
        with torch.device("meta"):
            model = build.from_config(
                config, dtype=DTYPES[dtype], attn_implementation="eager", trust_remote_code=False
            )
    except UNUSABLE as error:
        msg = f"cannot build a causal language model from this config of {config.model_type}: "
        raise UnsupportedModelError(f"{msg}{reason(error)}") from error
    return model


def check_dtype(dtype: str) -> None:
    """Raise InputError unless weights can have this dtype."""
    if dtype not in DTYPES:
        msg = f"dtype {dtype} is not known; give one of {', '.join(DTYPES)}"
        raise InputError(msg)


def _check_groups(config: PreTrainedConfig) -> None:
    """Raise InputError unless each K/V head serves as many query heads, in every layer."""
    for layer in config.per_layer_config:
        heads: object = getattr(layer, "num_attention_heads", None)
        kv_heads: object = getattr(layer, "num_key_value_heads", None)
        if isinstance(heads, int) and isinstance(kv_heads, int) and kv_heads and heads % kv_heads:
            msg = f"{heads} query heads cannot share {kv_heads} K/V heads evenly; "
            msg += "num_attention_heads must be a multiple of num_key_value_heads"
            raise InputError(msg)


def _check_needed_sizes(config: PreTrainedConfig, fields: Mapping[str, object]) -> None:
    """Raise InputError where the architecture's default stands in for a size that is not stated.

    Of a multimodal model the text part may leave sizes to its class, as published ones do; then
    ``default_sizes`` names them.
    """
    unstated = default_sizes(config, fields)
    if unstated and text_part(fields) is None:
        msg = f"the config has no {unstated[0][0]}; add it: a default would count another model"
        raise InputError(msg)


def default_sizes(
    config: PreTrainedConfig, fields: Mapping[str, object]
) -> tuple[tuple[str, object], ...]:
    """Return each size that the file does not state, with the class's default for it.

    Families name their sizes differently, so a size counts as stated when a field of about that
    name has its value.
    """
    stated = {**(text_part(fields) or {}), **fields}
    own = config.per_layer_config[0]  # of sizes that differ by layer, the first's
    unstated: list[tuple[str, object]] = []
    for field, words in {**NEEDED_SIZES, **USUAL_SIZES}.items():
        value = getattr(own, field, None)
        default = type(config).__dataclass_fields__.get(field)
        has_default = field in NEEDED_SIZES or (default is not None and default.default is not None)
        is_stated = value in _values_named(words, stated) or any(
            stated.get(name) is not None for name in NAMES[field]
        )
        if has_default and value is not None and not is_stated:
            unstated.append((field, value))
    return tuple(unstated)


def check_is_decoder(fields: Mapping[str, object]) -> None:
    """Raise UnsupportedModelError where the class that is named keeps no K/V from step to step."""
    named, model_type = architecture(fields), str(fields.get("model_type"))
    if named.endswith(ENCODERS):
        msg = f"the config's architectures names {named}, an encoder; choose a decoder-only model"
        raise UnsupportedModelError(msg)
    if model_type in MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        msg = f"{model_type} compares pictures with texts and writes none; choose a decoder-only "
        raise UnsupportedModelError(f"{msg}model")


def _values_named(words: str, fields: Mapping[str, object]) -> list[object]:
    """Return the values of fields about so named, and the lengths of lists and patterns."""
    found = [value for name, value in fields.items() if re.search(words, name)]
    found += [
        len(value)
        for name, value in fields.items()
        if re.search(words, name) or name == "hybrid_override_pattern"
        if isinstance(value, (list, str))
    ]
    return [
        one for value in found for one in (value if isinstance(value, list) else [value])
    ] + found
