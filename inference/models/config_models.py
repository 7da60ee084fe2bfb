"""A published ``config.json`` turned into a model without weights, on torch's meta device.

Nothing is downloaded and no code from a model repository is run: an architecture that transformers
does not know is counted as a usual decoder of its sizes, or refused in a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from inference.models.devices import DTYPES
from inference.records.errors import InputError, UnsupportedModelError

# What every count needs, and the words in the names that families give it in their configs.
NEEDED_SIZES = {"hidden_size": "hidden|model|emb", "num_hidden_layers": "layer"}
USUAL_SIZES = {
    "vocab_size": "vocab",
    "num_attention_heads": "head",
    "intermediate_size": "intermediate|ffn|inner|expan",
}
SIZE_NAME = re.compile(
    r"(hidden|intermediate|vocab|d_model|n_embd|n_embed)(_size)?$|^(head_dim|v_head_dim)$"
    r"|^(num|n)_(hidden_layers|layers?|attention_heads|heads?|key_value_heads|kv_heads)$"
)
# An architecture that transformers does not know is counted as this one, which most resemble.
USUAL_DECODER = "llama"
USUAL_FIELDS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
)
MORE_FIELDS = (
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
)
LONGEST_REASON = 200
UNUSABLE = (ValueError, RuntimeError, TypeError, AttributeError, KeyError, ZeroDivisionError)


def read_config(source: Path | str | Mapping[str, object]) -> PreTrainedConfig:
    """Return the config that a file, a folder with a ``config.json``, or its content describes.

    Raises:
        InputError: If it cannot be read, names no architecture, or a size is not above zero.
        UnsupportedModelError: If the architecture is not one that transformers knows, and the
            config does not have the sizes of a usual decoder either.
    """
    fields = dict(source) if isinstance(source, Mapping) else _fields_of(Path(source))
    model_type = fields.pop("model_type", None)
    if not isinstance(model_type, str):
        msg = "the config has no model_type; give a config.json as published with a model"
        raise InputError(msg)
    if model_type not in CONFIG_MAPPING:
        fields = _as_usual_decoder(model_type, fields)
        model_type = USUAL_DECODER
    for field in ("quantization_config", "auto_map"):  # the dtype is the caller's
        fields.pop(field, None)
    _check_stated_sizes(fields)
    try:
        config = AutoConfig.for_model(model_type, **fields)
    except Exception as error:
        msg = f"the config of {model_type} cannot be used: {_reason(error)}; check its fields"
        raise InputError(msg) from error
    _check_needed_sizes(config.get_text_config(decoder=True), fields)
    _check_groups(config.get_text_config(decoder=True))
    return config


def foreign_architecture(source: Path | str | Mapping[str, object]) -> str:
    """Return the architecture that a config names, where transformers does not know it."""
    fields = source if isinstance(source, Mapping) else _fields_of(Path(source))
    model_type = fields.get("model_type")
    return model_type if isinstance(model_type, str) and model_type not in CONFIG_MAPPING else ""


def model_on_meta(config: PreTrainedConfig, dtype: str) -> PreTrainedModel:
    """Return the causal language model of this config, its parameters without memory.

    Raises:
        InputError: If the dtype is not one of ``DTYPES``.
        UnsupportedModelError: If no causal language model can be built from it.
    """
    if dtype not in DTYPES:
        msg = f"dtype {dtype} is not known; give one of {', '.join(DTYPES)}"
        raise InputError(msg)
    if config.is_encoder_decoder:
        msg = f"{config.model_type} is an encoder-decoder; choose a decoder-only model"
        raise UnsupportedModelError(msg)
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                config, dtype=DTYPES[dtype], attn_implementation="eager", trust_remote_code=False
            )
    except UNUSABLE as error:
        msg = f"cannot build a causal language model from this config: {_reason(error)}"
        raise UnsupportedModelError(msg) from error
    return model


def _as_usual_decoder(model_type: str, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the sizes that a config of an unknown architecture shares with a usual decoder.

    Raises:
        UnsupportedModelError: It lacks one, or has experts, whose layout is unknown.
    """
    missing = [name for name in USUAL_FIELDS if name not in fields]
    experts = [name for name in fields if "expert" in name]
    if missing or experts:
        why = f"has no {missing[0]}" if missing else f"has experts ({experts[0]})"
        msg = f"the architecture {model_type!r} is not one that transformers knows, and its config "
        raise UnsupportedModelError(
            f"{msg}{why}, so it cannot be counted as a usual decoder; choose another model"
        )
    return {name: fields[name] for name in (*USUAL_FIELDS, *MORE_FIELDS) if name in fields}


def _fields_of(path: Path) -> dict[str, object]:
    path = path / "config.json" if path.is_dir() else path
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}; give the path of a config.json"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"{path} is not JSON: {error}; give the path of a config.json"
        raise InputError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path} holds no JSON object; give the path of a config.json"
        raise InputError(msg)
    return {str(key): value for key, value in content.items()}


def _check_stated_sizes(fields: Mapping[str, object]) -> None:
    """Raise InputError where a field that states a size is no whole number above zero."""
    for field, value in fields.items():
        if isinstance(value, Mapping):
            _check_stated_sizes(value)
        elif SIZE_NAME.search(str(field)) and value is not None and not _is_size(value):
            msg = f"the config's {field} is {value!r}; it must be a whole number above zero"
            raise InputError(msg)


def _check_groups(config: PreTrainedConfig) -> None:
    """Raise InputError unless each K/V head serves as many query heads."""
    heads: object = getattr(config, "num_attention_heads", None)
    kv_heads: object = getattr(config, "num_key_value_heads", None)
    if isinstance(heads, int) and isinstance(kv_heads, int) and kv_heads and heads % kv_heads:
        msg = f"{heads} query heads cannot share {kv_heads} K/V heads evenly; "
        msg += "num_attention_heads must be a multiple of num_key_value_heads"
        raise InputError(msg)


def _check_needed_sizes(config: PreTrainedConfig, fields: Mapping[str, object]) -> None:
    """Raise InputError where the architecture's default stands in for a size that is not stated.

    Families name their sizes differently, so a size counts as stated when a field of about that
    name has its value. Configs with a section for text may leave more to the defaults, as some are
    published that way.
    """
    text = fields.get("text_config")
    is_nested = isinstance(text, Mapping)
    inner = {str(name): value for name, value in text.items()} if is_nested else {}
    stated = {**inner, **fields}
    needed = NEEDED_SIZES if is_nested else {**NEEDED_SIZES, **USUAL_SIZES}
    for field, words in needed.items():
        value = getattr(config, field, None)
        own = type(config).__dataclass_fields__.get(field)
        has_default = field in NEEDED_SIZES or (own is not None and own.default is not None)
        if has_default and value is not None and value not in _values_named(words, stated):
            msg = f"the config has no {field}; add it: a default would count another model"
            raise InputError(msg)


def _values_named(words: str, fields: Mapping[str, object]) -> list[object]:
    return [value for name, value in fields.items() if re.search(words, name)]


def _is_size(value: object) -> bool:
    """Return whether a value is a whole number above zero, or a list of such for the layers."""
    if isinstance(value, list):
        return all(_is_size(one) for one in value)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _reason(error: BaseException) -> str:
    """Return what the library says, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"
