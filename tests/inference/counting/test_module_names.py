"""Names of modules in a ``quantization_config``; formats are tried with configs."""

from __future__ import annotations

import pytest

from inference.counting.module_names import Names
from inference.records.errors import InputError

FULL = "layers.0.self_attn.q_proj"
# One letter, two or three at a time, again and again: the number of ways grows with each letter.
ENDLESS = r"(?:[\w.]|[\w.][\w.]|[\w.]{3})*[0-9][0-9]$"


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        (r"re:.*self_attn\..*", True),
        (r"re:model\.layers\.\d+\.self_attn\.(q|k|v)_proj$", True),
        (r"re:layers\.[1-9].*", False),
        (r"re:^(?!.*self_attn).*$", False),
        ("model.layers.0.self_attn", True),
        ("q_proj", True),
    ],
)
def test_a_module_is_found_under_its_name_or_pattern(name: str, *, is_named: bool) -> None:
    assert Names([name]).has(FULL) is is_named


def test_a_pattern_that_never_ends_is_refused_in_bounded_time() -> None:
    with pytest.raises(InputError, match="takes too long to match; write it without repetitions"):
        Names([f"re:{ENDLESS}"]).has(FULL)


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"'re:\(\(\(', which is no regular expression"):
        Names(["re:((("])
