"""What the fuzz tests share: how many examples, from which seed, and values of every kind.

``make test`` tries the same examples every time. ``make fuzz`` tries ``FUZZ_EXAMPLES`` new ones of
each kind and prints how to make again what fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES_VARIABLE = "FUZZ_EXAMPLES"
# Numbers at the edges of what formats and machines hold, and a little beyond.
EDGES = (0, -1, 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63, -(2**63), 10**40, 10**400)
ODD_FLOATS = (0.0, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("-inf"), float("nan"))
ODD_TEXTS = (
    "",
    "\x00",
    "\ud800",
    "\u202e",
    "![x](http://evil.example/x.png)",
    "<img src=x onerror=1>",
    "../../etc/passwd",
    "%2F",
    "=cmd()",
    "NaN",
    "a" * 5000,
)


def fuzzed(usual: int, share: float = 1.0) -> settings:
    """Return settings of a fuzz test.

    Args:
        usual: Examples in every test run, all from a fixed seed.
        share: Of the examples asked for in a longer run; less for what takes longer.
    """
    asked = os.environ.get(EXAMPLES_VARIABLE, "")
    return settings(
        max_examples=max(1, int(int(asked) * share)) if asked else usual,
        derandomize=not asked,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def check_sentence(error: Exception) -> None:
    """Fail unless an error says something."""
    assert str(error).strip()


def scalars() -> st.SearchStrategy[Any]:
    """Return values that JSON writes without brackets."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(EDGES),
        st.integers(-10, 300),
        st.sampled_from(ODD_FLOATS),
        st.floats(),
        st.sampled_from(ODD_TEXTS),
        st.text(max_size=12),
    )


def values(keys: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Any]:
    """Return values that JSON can write, nested a little.

    Args:
        keys: Names in objects; any unless given.
    """
    names = st.text(max_size=6) if keys is None else keys
    return st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
        max_leaves=8,
    )


@st.composite
def damaged(draw: Callable[..., Any], tree: Any) -> Any:  # noqa: ANN401  JSON is anything
    """Return a copy of a tree of JSON in which a few values are changed, gone, or there twice."""
    changed = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(1, 3))):
        _damage(draw, changed)
    return changed


def _damage(draw: Callable[..., Any], tree: Any) -> None:  # noqa: ANN401  JSON is anything
    """Change one value somewhere below."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = tree[key]
        if isinstance(inner, dict | list) and inner and draw(st.integers(0, 4)):
            tree = inner
            continue
        what = draw(st.sampled_from(("changed", "changed", "gone", "twice")))
        if what == "gone":
            del tree[key]
        elif what == "twice" and isinstance(tree, list):
            tree.insert(key, inner)
        else:
            tree[key] = draw(values())
        return


@st.composite
def flipped(draw: Callable[..., Any], content: bytes) -> bytes:
    """Return content with some of its bytes changed, cut off, or repeated."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        what = draw(st.sampled_from(("flip", "flip", "cut", "repeat", "insert")))
        if what == "flip" and changed:
            changed[place] = draw(st.integers(0, 255))
        elif what == "cut":
            del changed[place : place + draw(st.integers(1, 40))]
        elif what == "repeat":
            changed[place:place] = changed[place : place + draw(st.integers(1, 40))]
        else:
            changed[place:place] = draw(st.binary(max_size=8))
    return bytes(changed)
