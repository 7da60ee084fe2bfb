"""The sizes that a published ``config.json`` states: checked before anything is built. No torch.

Families name the same size differently, type whole numbers as floats and write 0 for what they do
not have. What is read here is the same for every architecture; what a class makes of it is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from inference.records.errors import InputError

Fields = Mapping[str, object]

# A field that states a size, by its name's last word, and the largest that any model could have.
LIMITS = (
    (re.compile(r"(^|_)n(um)?_(\w+_)?layers?(_|$)|^(encoder|decoder)_layers$"), 2_000),
    (re.compile(r"(^|_)n(um)?_(\w+_)?(heads?|groups?|kv)$|_heads(_per_layer)?$"), 100_000),
    (re.compile(r"(^|_)n(um)?_(\w+_)?experts?(_\w+)?$|^(moe|n)_(topk|top_k|k)$"), 20_000),
    (re.compile(r"vocab(_size)?$|^n_vocab$"), 100_000_000),
    (re.compile(r"position|_positions$|seq_len|context_len|sliding_window|chunk"), 10_000_000_000),
    (
        re.compile(
            r"hidden(_size)?$|(^|_)(dim|rank|width|inner|embd|embed|d_model|d_ff|channels)$"
            r"|intermediate(_size)?$|head_dim$|head_size$|ffn(_hidden)?(_size|_dim)$|state_size$"
        ),
        10_000_000,
    ),
)
# Without these no decoder can be counted, so a zero is a mistake; elsewhere it means "has none".
NEVER_ZERO = frozenset(
    {
        "d_model",
        "hidden_size",
        "model_dim",
        "multi_query_group_num",
        "n_embd",
        "n_head",
        "n_heads",
        "n_kv_heads",
        "n_layer",
        "n_layers",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "num_kv_heads",
        "num_layers",
        "num_query_heads",
        "num_transformer_layers",
        "padded_vocab_size",
        "vocab_size",
    }
)
# Where zero, or a negative number, means that there is none.
NONE_IF_ZERO = frozenset(["sliding_window", "q_lora_rank", "kv_lora_rank", "head_dim", "n_inner"])
TOO_LARGE = 1e300  # infinity is no whole number
LONGEST_SHOWN = 40
DEEPEST = 20
MOST_VALUES = 100_000
# What names a dimension and states none, such as mscale_all_dim of rope_scaling, a decimal.
NO_SIZE = re.compile(r"(^|_)m?scale(_|$)|factor|ratio|theta|alpha|beta")
UNLIMITED = -1  # how some say that a window or chunk has no end
UNLIMITED_NAMES = re.compile(r"chunk|window|position|seq_len|context_len")
PATTERN_KINDS = {"L": "sliding_attention", "G": "full_attention"}


def checked_fields(fields: Fields) -> dict[str, object]:
    """Return the fields with whole numbers where floats are typed and None for what is absent.

    Raises:
        InputError: A size is negative, no number or larger than any model's; the file is nested
            deeper, or holds more values, than a config does.
    """
    _check_extent(fields)
    return _checked(fields)


def whole_number(value: object) -> int | None:
    """Return a whole number, typed as a float or not; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == value and abs(value) < TOO_LARGE and value == int(value) else None  # noqa: PLR0124  NaN


def layer_types_of_pattern(fields: Fields) -> tuple[str, ...] | None:
    """Return each layer's kind where ``sliding_window_pattern`` is written as letters.

    "L" slides, "G" attends to all; the pattern repeats and the last layer attends to all.

    Raises:
        InputError: It holds other letters, or the number of layers is not stated.

    Source:
        transformers 5.24, ``Exaone4Config``.
    """
    pattern = fields.get("sliding_window_pattern")
    if not isinstance(pattern, str):
        return None
    layers = whole_number(fields.get("num_hidden_layers"))
    if not pattern or set(pattern) - PATTERN_KINDS.keys() or not layers:
        msg = f"the config's sliding_window_pattern is {pattern!r}; it must be a whole number, or "
        msg += "letters L (sliding) and G (full attention) such as LLLG"
        raise InputError(msg)
    kinds = [PATTERN_KINDS[pattern[layer % len(pattern)]] for layer in range(layers)]
    return (*kinds[:-1], "full_attention")


def _check_extent(fields: Fields) -> None:
    """Raise InputError where the file is nested deeper, or holds more, than a config does."""
    level: list[object] = [fields]
    seen = 0
    for _ in range(DEEPEST):
        inner: list[object] = []
        for one in level:
            inner += (
                one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
            )
        seen += len(inner)
        if seen > MOST_VALUES:
            msg = f"the config holds more than {MOST_VALUES:,} values; it is no model's config"
            raise InputError(msg)
        level = [one for one in inner if isinstance(one, (Mapping, list))]
        if not level:
            return
    msg = f"the config is nested more than {DEEPEST} levels deep; it is no model's config"
    raise InputError(msg)


def _checked(fields: Fields) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, value in fields.items():
        if name == "quantization_config":
            result[name] = value
        elif isinstance(value, Mapping):
            result[str(name)] = _checked(value)
        else:
            result[str(name)] = _checked_value(str(name), value)
    return result


def _checked_value(name: str, value: object) -> object:
    limit = _limit(name)
    is_flag = isinstance(value, bool) and name not in NEVER_ZERO
    if limit is None or value is None or is_flag:
        return value
    if isinstance(value, list):
        return [_checked_value(name, one) if _is_number(one) else one for one in value]
    size = whole_number(value)
    if name in NONE_IF_ZERO and size is not None and size <= 0:
        return None
    is_needed = name in NEVER_ZERO
    if size == UNLIMITED and UNLIMITED_NAMES.search(name):
        return size
    if size is None and not is_needed and not name.endswith(("_size", "_dim")):
        return value  # a name that only sounds like a size
    least = 1 if is_needed else 0
    if size is None or size < least:
        kind = "above zero" if is_needed else "from zero on"
        msg = f"the config's {name} is {_shown(value)}; it must be a whole number {kind}"
        raise InputError(msg)
    if size > limit:
        msg = f"the config's {name} is {_shown(value)}; no model has more than {limit:,}"
        raise InputError(msg)
    return size


def _limit(name: str) -> int | None:
    """Return the largest that any model could have of a size; None for what is none."""
    if NO_SIZE.search(name):
        return None
    return next((most for pattern, most in LIMITS if pattern.search(name)), None)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = f"{value:,}" if _is_number(value) and not isinstance(value, float) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
