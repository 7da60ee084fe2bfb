"""The list of what was tried: every case names a test that is there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRIED: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
)["tried"]
FOUND, ALL = 19, 73


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of a file's tests."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".js"):
        return frozenset(re.findall(r'^test\("([^"]+)"', text, re.MULTILINE))
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return frozenset(name for name in names if name.startswith("test_"))


def test_all_that_was_tried_is_on_the_list_once() -> None:
    numbered = [one["case"] for one in TRIED if one["case"].isdigit()]

    assert numbered == [str(number) for number in range(1, ALL + 1)]
    assert [one["case"] for one in TRIED[ALL:]] == [f"note {number}" for number in range(1, 6)]


@pytest.mark.parametrize("tried", TRIED, ids=lambda one: one["case"])
def test_a_test_holds_each_case(tried: dict[str, str]) -> None:
    path, _, name = tried["test"].partition("::")

    assert tried["what"]
    assert tried["seen"]
    assert name in names_in(path)


def test_a_test_that_is_not_there_is_missed() -> None:
    assert "test_of_nothing" not in names_in("tests/faults/test_cases.py")
    assert len(names_in("tests/panel/server_line.test.js")) > 1
