"""The chart of attention weights in reports: what each cell stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inference.records.attention import AttentionChoice, AttentionMap
from inference.runs.packed_attention import packed_together
from tests.builders import numbered_request, step, trace_with
from visuals.charts.attention_weights import CELLS, caption, title, weight_rows
from visuals.charts.chart_files import run_charts

CHOICE = AttentionChoice(layer=1, is_all_heads=True)
PROMPT, TOKENS = 4, 6


def triangle(tokens: int, planes: int = 1) -> AttentionMap:
    """Return the map of a prompt in which a query gives each key the number of that key."""
    weights = np.tril(np.ones((tokens, tokens)) * np.arange(tokens) / tokens)
    return AttentionMap(
        choice=CHOICE,
        heads=tuple(range(planes)),
        query_tokens=tokens,
        kv_tokens=tokens,
        weights=np.stack([weights * (1 + plane) for plane in range(planes)]).astype(np.float32),
    )


def test_a_short_run_has_a_cell_for_each_weight() -> None:
    rows = weight_rows((triangle(3, planes=2),))

    cells = {(row["query"], row["key"]): row["weight"] for row in rows}
    assert sorted(cells) == [(q, k) for q in range(3) for k in range(q + 1)]
    assert cells[2, 1] == 0.5  # the mean of 1/3 and 2/3
    assert all(row["key_end"] == row["key"] + 1 for row in rows)  # pyright: ignore  numbers


def test_a_long_run_shows_the_largest_weight_of_neighbours_and_no_more_marks_than_fit() -> None:
    rows = weight_rows((triangle(150),))

    assert len(rows) <= CELLS * (CELLS + 1) / 2
    last = rows[-1]
    assert (last["query"], last["query_end"], last["key_end"]) == (147, 150, 150)
    assert last["weight"] == round(149 / 150, 4)


def test_decode_rows_stand_below_the_prompt() -> None:
    row = AttentionMap(
        choice=CHOICE,
        step_index=1,
        query_start=3,
        query_tokens=1,
        kv_start=2,
        kv_tokens=2,
        weights=np.full((1, 1, 2), 0.5, dtype=np.float32),
    )

    rows = weight_rows((triangle(3), row))

    assert [(one["query"], one["key"]) for one in rows if one["query"] == 3] == [(3, 2), (3, 3)]


def test_a_weight_that_is_no_number_is_no_mark() -> None:
    broken = triangle(2)
    assert broken.weights is not None
    weights = broken.weights.copy()
    weights[0, 1, 0] = np.nan

    rows = weight_rows((replace(broken, weights=weights),))

    assert [(one["query"], one["key"]) for one in rows] == [(0, 0), (1, 1)]


def test_without_maps_there_is_nothing() -> None:
    assert weight_rows(()) == []


def test_a_run_with_weights_has_their_charts_under_their_own_names() -> None:
    plain = trace_with([step(index, PROMPT, 65) for index in range(3)])
    run = replace(plain, requests=(numbered_request(0, PROMPT),))
    one_head = replace(CHOICE, is_all_heads=False, head=3)
    maps = [replace(triangle(TOKENS, planes=4))]
    kept = packed_together([(CHOICE, maps, "A note."), (one_head, maps, "")])

    charts = {one.name: one for one in run_charts(replace(run, attention=kept))}

    assert charts["attention-1"].title == "Attention weights, layer 1, mean of 4 heads"
    assert charts["attention-2"].title == "Attention weights, layer 1, head 3"
    assert charts["attention-1"].caption == "A note."
    spec = charts["attention-1"].build().to_dict()
    assert len(spec["datasets"]["weights"]) == TOKENS * (TOKENS + 1) // 2
    assert spec["encoding"]["color"]["scale"]["type"] == "log"
    assert not [one for one in run_charts(run) if one.name.startswith("attention")]
    assert caption(kept[1]) == ""
    assert title(replace(run, requests=run.requests * 2), kept[1]).endswith("request 1")
