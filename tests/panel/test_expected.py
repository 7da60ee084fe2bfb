"""What the browser's modules must compute, by the Python that says the same.

The tests of the modules (``*.test.js`` beside this file) read ``expected.json``; here it is held to
what the Python functions give. ``make golden`` writes it.
"""

from __future__ import annotations

import base64
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.counting import masks
from inference.records.attention import AttentionChoice, AttentionMap
from visuals.charts import axes, units
from visuals.live.attention_feed import Captured, Feed, blocks_of, coarser
from visuals.words.glossary import form_pattern, pieces
from visuals.words.terms import TERMS

pytestmark = pytest.mark.golden

PATH = Path(__file__).parent / "expected.json"
LEAST = (8, 16)
LARGEST = (0, 1, 8, 9, 12, 13, 16, 17, 24, 25, 36.5, 48, 49, 1000, 4096, 4097)
COUNTS = (0, 1, 3, 799, 800, 801, 1600, 1601, 12_345)
LIMITS = (1, 4, 800)
AMOUNTS = (
    *(0, 1, 2.5, 9.996, 10, 12.25, 12.35, 99.95, 99.949, 999.5, 999.4, 1000, 1234, 1235, 1_234_567),
    *(0.572, 0.0123449, 0.0005, 1e-7, -0.25, -1234),
)
WHOLE = (0, 7, 999, 1000, 12_345, 1_234_567)
SHARES = (None, 0.0001, 0.00012345, 0.005, 0.0999, 0.1, 0.123, 0.5, 0.99949, 0.9995, 0.9996, 1.0)
HALVES = (
    *(0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3BFF, 0x3C00, 0x3C01, 0xBC00, 0x2E66, 0x7BFF),
    *(0x7C00, 0xFC00, 0x7E00, 0x5640),
)
MASK_TOKENS = 13
KINDS: tuple[tuple[int | None, bool], ...] = (
    *((None, False), (1, False), (4, False), (13, False), (40, False)),
    *((1, True), (4, True), (5, True), (40, True)),
)

TEXTS = (
    "TTFT 320 ms, ITL p50 12 ms; prefill fed T=41, L=41",
    "FLOPs per byte, K/V heads, KV cache, Layers of the layer: K/V",
    "the arrow keys go on; keys and values are stored, keyboard, t=3, ttft, T4, 2\u00b7T\u00b7d_in",
    "nothing to be explained here",
)


def test_the_table_that_the_browsers_tests_read_is_what_python_gives() -> None:
    made = {
        "axis_end": _axis_ends(),
        "stride_for": [[n, limit, axes.stride_for(n, limit)] for n in COUNTS for limit in LIMITS],
        "thinning": [_thinned(steps, per_step) for steps, per_step in ((5, 1), (40, 1), (33, 2))],
        "significant": [[value, units.significant(value)] for value in AMOUNTS],
        "group": [[count, units.counted(count, "token")] for count in WHOLE],
        "share": [[ratio, units.share(ratio)] for ratio in SHARES],
        "masks": [_mask(window, is_chunked=is_chunked) for window, is_chunked in KINDS],
        "half": [[bits, _half(bits)] for bits in HALVES],
        "attention": [_message(1, 1), _message(3, 2)],
        "terms": {
            "pattern": form_pattern(),
            "forms": {term.key: list(term.forms) for term in TERMS},
            "texts": [[text, _terms(text)] for text in TEXTS],
        },
    }
    if os.environ.get("GOLDEN") == "write":
        table = {"header": _header(), **made}
        PATH.write_text(json.dumps(table, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    kept = json.loads(PATH.read_text(encoding="utf-8"))
    del kept["header"]
    assert kept == json.loads(json.dumps(made, allow_nan=False))


def _terms(text: str) -> list[list[Any]]:
    """Return each term where it first stands in a text: key, from, to."""
    found: list[list[Any]] = []
    end = 0
    for piece in pieces(text):
        start, end = end, end + len(piece.text)
        if piece.term is not None:
            found.append([piece.term.key, start, end])
    return found


def _header() -> dict[str, str]:
    return {
        "made_by": "tests/panel/test_expected.py, by make golden",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _axis_ends() -> list[list[float]]:
    return [[end, least, axes.axis_end(end, least=least)] for end in LARGEST for least in LEAST]


def _thinned(steps: int, per_step: int) -> dict[str, Any]:
    """Return rows of some steps, and what each rule of thinning leaves of them at a limit of 10."""
    rows = [
        {"k": k, "from": k, "to": k + 1, "kind": "cold" if k < 2 else "warm", "ms": k * 7 % 11}
        for k in range(1, steps + 1)
        for _ in range(per_step)
    ]
    return {
        "rows": rows,
        "limit": 10,
        "picked": axes.picked(rows, 10),
        "medians": axes.medians(rows, "ms", 10),
    }


def _mask(window: int | None, *, is_chunked: bool) -> dict[str, Any]:
    """Return the first key of each query under one kind of mask, and how many keys it reads."""
    tokens = MASK_TOKENS
    if window is None:
        mask = masks.causal(tokens, tokens)
    elif is_chunked:
        mask = masks.chunked(tokens, tokens, window)
    else:
        mask = masks.sliding_window(tokens, tokens, window)
    return {
        "window": window,
        "chunked": is_chunked,
        "first": mask.argmax(axis=1).tolist(),
        "keys": mask.sum(axis=1).tolist(),
    }


def _half(bits: int) -> str:
    """Return a half-precision number as JavaScript writes it, or a decimal that it reads."""
    value = float(np.array([bits], dtype=np.uint16).view(np.float16)[0])
    if np.isnan(value):
        return "NaN"
    return repr(value).replace("inf", "Infinity")


def _message(query_bin: int, kv_bin: int) -> dict[str, Any]:
    """Return a message of one map's blocks, and the weight that each query gave each key."""
    queries, keys, planes = 6, 9, 2
    exact = np.random.default_rng(5).random((planes, queries, keys)).astype(np.float32)
    causal = np.arange(keys)[None, :] <= np.arange(3, 3 + queries)[:, None]
    cells = coarser(coarser(exact * causal, 2, kv_bin), 1, query_bin).astype(np.float16)
    choice = AttentionChoice(layer=0, is_all_heads=True)
    seen = AttentionMap(
        choice=choice,
        heads=(0, 1),
        query_start=3,
        query_tokens=queries,
        kv_tokens=keys,
        query_bin=query_bin,
        kv_bin=kv_bin,
        weights=cells,
        first_token=cells[:, :, 0],
        rest_of_first_cell=cells[:, :, 0] / 2,
    )
    feed = Feed()
    feed.next(Captured(choice=choice, maps=(seen,)))  # the state comes first
    sent = feed.next(Captured(choice=choice, maps=(seen,)))
    assert sent is not None
    assert len(blocks_of(seen)) == 1
    weights = [
        [plane, query, key, float(cells[plane, (query - 3) // query_bin, key // kv_bin])]
        for plane in range(planes)
        for query in range(3, 3 + queries)
        for key in range(keys)
    ]
    return {"message": base64.b64encode(sent).decode(), "weights": weights}
