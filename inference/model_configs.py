"""A published ``config.json`` turned into a model without weights, on torch's meta device.

Nothing is downloaded and no code from a model repository is run: an architecture that transformers
does not know is refused in a sentence.
"""

from __future__ import annotations

import json
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

from inference.devices import DTYPES
from inference.errors import InputError, UnsupportedModelError

SIZE_FIELDS = ("hidden_size", "num_hidden_layers", "vocab_size")
UNUSABLE = (ValueError, RuntimeError, TypeError, AttributeError, KeyError, ZeroDivisionError)


def read_config(source: Path | str | Mapping[str, object]) -> PreTrainedConfig:
    """Return the config that a file, a folder with a ``config.json``, or its content describes.

    Raises:
        InputError: If it cannot be read, names no architecture, or a size is not above zero.
        UnsupportedModelError: If the architecture is not one that transformers knows.
    """
    fields = dict(source) if isinstance(source, Mapping) else _fields_of(Path(source))
    model_type = fields.pop("model_type", None)
    if not isinstance(model_type, str):
        msg = "the config has no model_type; give a config.json as published with a model"
        raise InputError(msg)
    if model_type not in CONFIG_MAPPING:
        msg = f"the architecture {model_type!r} is not one that transformers knows"
        raise UnsupportedModelError(msg)
    for field in ("quantization_config", "auto_map"):  # the dtype is the one asked for
        fields.pop(field, None)
    try:
        config = AutoConfig.for_model(model_type, **fields)
    except Exception as error:
        msg = f"the config of {model_type} cannot be used: {_first_line(error)}"
        raise InputError(msg) from error
    _check_sizes(config.get_text_config(decoder=True))
    return config


def model_on_meta(config: PreTrainedConfig, dtype: str) -> PreTrainedModel:
    """Return the causal language model of this config, its parameters without memory.

    Raises:
        InputError: If the dtype is not one of ``DTYPES``.
        UnsupportedModelError: If no causal language model can be built from it.
    """
    if dtype not in DTYPES:
        msg = f"dtype {dtype} is not one of {', '.join(DTYPES)}"
        raise InputError(msg)
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                config, dtype=DTYPES[dtype], attn_implementation="eager", trust_remote_code=False
            )
    except UNUSABLE as error:
        msg = f"cannot build a causal language model from this config: {_first_line(error)}"
        raise UnsupportedModelError(msg) from error
    return model


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


def _check_sizes(config: PreTrainedConfig) -> None:
    for field in SIZE_FIELDS:
        value = getattr(config, field, None)
        if not isinstance(value, int) or value <= 0:
            msg = f"the config's {field} is {value}; it must be a whole number above zero"
            raise InputError(msg)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
