"""The built-in model that a server's name for a model means, where that is certain. No torch."""

from __future__ import annotations

import re

from inference.counting.public_configs import public_config_names

# What publishers add to a name without changing the sizes: tuning, dates, versions, formats.
SAME_SIZES = re.compile(
    r"(?:[-_.:](?:instruct|it|chat|base|hf|gguf|v\d+(?:\.\d+)?|\d{4}|bf16|fp16|f16|f32|fp8|fp4|"
    r"awq|gptq|int4|int8|w\d+a\d+|i?q\d(?:_[0-9a-z]+)*))*"
)
MAKERS = ("meta-",)


def public_name(served: str) -> str | None:
    """Return the built-in model of a served name, such as ``Qwen/Qwen3-8B-FP8``; None for none.

    The longest name that fits counts, and only where nothing is left that could be another size.
    """
    name = re.split(r"[/\\]", served.strip())[-1].casefold()
    for maker in MAKERS:
        name = name.removeprefix(maker)
    for known in sorted(public_config_names(), key=len, reverse=True):
        if name.startswith(known.casefold()) and SAME_SIZES.fullmatch(name[len(known) :]):
            return known
    return None
