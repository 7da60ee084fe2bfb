"""A config of the library's classes made from published fields, the field named where it cannot be.

The library checks types strictly: 6 is no float, null no whole number. What only the typing of a
value is in the way of is put right here; what a class leaves out is given back as a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from inference.counting.config_sizes import NONE_IF_ZERO, layer_types_of_pattern, whole_number
from inference.records.errors import InputError

MOST_REPAIRS = 50
LONGEST_REASON = 200
FIELD = re.compile(r"Validation error for field '(\w+)'")
EXPECTED = re.compile(r"expected (\w+)")
# Model types of repositories with code of their own whose classes the library took in by another
# name. Source: the architectures that these repositories' configs name.
RENAMED_TYPES = {"minimax_text_01": "minimax", "minimax_m1": "minimax", "MiniMaxText01": "minimax"}
SOFTMAX = 1  # in MiniMax's attn_type_list; 0 is linear attention


def known_type(fields: Mapping[str, object]) -> str | None:
    """Return the library's model type for these fields: what the architecture named in them is.

    Several architectures share a ``model_type``, and some have one that the library does not know;
    the class that is named says which it is.
    """
    model_type = fields.get("model_type")
    stated = RENAMED_TYPES.get(model_type, model_type) if isinstance(model_type, str) else None
    named = architecture(fields)
    types = _types_by_class().get(named, ())
    if stated in CONFIG_MAPPING and (not types or stated in types):
        return stated
    if types:  # of several that one class serves, the one that it is named after
        own = (one for one in types if named.lower().startswith(one.replace("_", "")))
        return next(own, types[0])
    return stated if stated in CONFIG_MAPPING else None


def architecture(fields: Mapping[str, object]) -> str:
    """Return the first class that a config names; empty where it names none."""
    names = fields.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def is_library_class(name: str) -> bool:
    """Return whether the library has a causal language model of this name."""
    return name in _types_by_class()


def library_config(model_type: str, fields: Mapping[str, object]) -> PreTrainedConfig:
    """Return the config of a type that the library knows.

    Raises:
        InputError: A field does not fit its class; it is named, with what it holds.
    """
    _check_positions(fields)
    usable = {
        name: value
        for name, value in _without_dtypes(with_layer_types(fields)).items()
        if name not in ("quantization_config", "auto_map", "model_type")  # no code is run
    }
    for _ in range(MOST_REPAIRS):
        try:
            return AutoConfig.for_model(model_type, **usable)
        except Exception as error:
            repaired = _repaired(usable, str(error))
            if repaired is None:
                raise InputError(_refusal(model_type, usable, error)) from error
            usable = repaired
    msg = f"the config of {model_type} has too many fields of the wrong type; check them"
    raise InputError(msg)


def reason(error: BaseException) -> str:
    """Return what the library says, on one line, without its lists of classes."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):  # its text is the key, or a sentence, in quotes
        said = str(error.args[0]) if error.args else ""
        text = f"it does not know {said!r}" if said.isidentifier() else said
    text = re.sub(r"(Unrecognized configuration class).*", "the library has no such class", text)
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def _without_dtypes(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields without the dtypes that they name, in any part: the caller's is taken."""
    return {
        name: _without_dtypes(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if name not in ("torch_dtype", "dtype")
    }


def _check_positions(fields: Mapping[str, object]) -> None:
    """Raise InputError where a file says how positions are scaled in another way than in parts."""
    for name in ("rope_scaling", "rope_parameters"):
        value = fields.get(name)
        if value is not None and not isinstance(value, Mapping):
            msg = f"the config's {name} is {repr(value)[:LONGEST_REASON]}; it must be null, or an "
            raise InputError(f'{msg}object such as {{"rope_type": "yarn", "factor": 4.0}}')


@cache
def _types_by_class() -> dict[str, tuple[str, ...]]:
    types: dict[str, tuple[str, ...]] = {}
    for model_type, names in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items():
        for name in (names,) if isinstance(names, str) else names:
            types[name] = (*types.get(name, ()), model_type)
    return types


def with_layer_types(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields with patterns written as the kind of each layer."""
    result = {
        name: with_layer_types(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
    }
    kinds = layer_types_of_pattern(result)
    if kinds is not None:
        del result["sliding_window_pattern"]
        result.setdefault("layer_types", list(kinds))
    types = result.get("attn_type_list")
    if isinstance(types, list) and "layer_types" not in result:
        result["layer_types"] = [
            "full_attention" if one == SOFTMAX else "linear_attention" for one in types
        ]
    return result


def _repaired(fields: Mapping[str, object], message: str) -> dict[str, object] | None:
    """Return the fields with the value that the message complains of retyped; None if it cannot."""
    found = FIELD.search(message)
    if found is None:
        return None
    name, expected = found.group(1), set(EXPECTED.findall(message))
    changed = False

    def retyped(part: Mapping[str, object]) -> dict[str, object]:
        nonlocal changed
        result: dict[str, object] = {}
        for key, value in part.items():
            new = retyped(value) if isinstance(value, Mapping) else value
            if key == name and not isinstance(value, Mapping):
                is_zero = value is None and key in NONE_IF_ZERO and "int" in expected
                new = 0 if is_zero else _as(value, expected)
                if new is None and value is None and "int" not in expected:
                    changed = True  # null: the class's own value, which is no size
                    continue
                changed = changed or new is not None
                new = value if new is None else new
            result[key] = new
        return result

    result = retyped(fields)
    return result if changed else None


def _as(value: object, expected: set[str]) -> object:
    """Return the value as the type expected where it is the same number; None otherwise."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and "float" in expected and isinstance(value, int):
        return float(value)
    if is_number and "int" in expected and isinstance(value, float):
        return whole_number(value)
    if is_number and "bool" in expected and value in (0, 1):
        return bool(value)
    return None


def _refusal(model_type: str, fields: Mapping[str, object], error: Exception) -> str:
    found = FIELD.search(str(error))
    if found is None and "layer_type" in str(error):
        return _layer_types_refusal(model_type, fields, error)
    if found is None:
        return f"the config of {model_type} cannot be used: {reason(error)}; check its fields"
    name = found.group(1)
    wanted = " or ".join(dict.fromkeys(EXPECTED.findall(str(error)))) or "another kind of value"
    value = repr(_value_of(fields, name))
    value = value if len(value) <= LONGEST_REASON // 4 else f"{value[:50]}…"
    words = {"int": "a whole number", "float": "a number", "NoneType": "null", "str": "text"}
    wanted = " or ".join(words.get(one, one) for one in wanted.split(" or "))
    return f"the config's {name} is {value}; a {model_type} has {wanted} there"


def _layer_types_refusal(model_type: str, fields: Mapping[str, object], error: Exception) -> str:
    types, count = _value_of(fields, "layer_types"), _value_of(fields, "num_hidden_layers")
    if isinstance(types, list) and isinstance(count, int) and len(types) != count:
        return (
            f"the config has {len(types)} values in layer_types and num_hidden_layers is {count}; "
            "there must be one for each layer"
        )
    if not isinstance(types, list):
        said = reason(error).rpartition("Error: ")[2]
        return f"the config's kinds of layer do not fit a {model_type}: {said}; check them"
    kinds = dict.fromkeys(map(str, types))
    shown = ", ".join(repr(one)[:LONGEST_REASON] for one in list(kinds)[:3])
    return (
        f"the config's layer_types holds {shown}, of which not all are kinds of layer that a "
        f"{model_type} has; full_attention and sliding_attention are usual"
    )


def _value_of(fields: Mapping[str, object], name: str) -> object:
    if name in fields:
        return fields[name]
    parts = (value for value in fields.values() if isinstance(value, Mapping))
    found = (_value_of(part, name) for part in parts)
    return next((value for value in found if value is not None), None)
