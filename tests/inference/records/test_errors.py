"""How errors of other people's code are quoted inside a sentence of ours."""

from __future__ import annotations

import pytest

from inference.records.errors import first_line


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(ValueError("too long.\nSee the manual."), "too long", id="first of two"),
        pytest.param(ValueError("\r\n  no rows; \rmore"), "no rows", id="other line ends"),
        pytest.param(KeyError("head_dim"), "head_dim", id="key without quotes"),
        pytest.param(KeyError(), "KeyError", id="key without argument"),
        pytest.param(OSError(), "OSError", id="says nothing"),
        pytest.param(ValueError(" \n "), "ValueError", id="blank"),
        pytest.param(RuntimeError("v1.2: not read:"), "v1.2: not read", id="inner punctuation"),
    ],
)
def test_an_error_is_quoted_by_its_first_line(error: Exception, expected: str) -> None:
    assert first_line(error) == expected
