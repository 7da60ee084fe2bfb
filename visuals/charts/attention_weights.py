"""The attention weights that a run file keeps, as a chart for reports and exports.

A cell stands for one weight or, of longer runs, for the largest among a few neighbours. The live
panel draws the same weights on a canvas. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import altair as alt
import numpy as np
from numpy.typing import NDArray

from inference.records.attention import AttentionMap, MapLayout, PackedAttention
from inference.records.run import RunTrace
from inference.runs.packed_attention import unpacked
from visuals.charts.theme import Chart, Row, finished, whole_numbers

CELLS = 60  # along an axis: the triangle then has at most 1,830 marks
LEAST = 1e-4  # the colour scale's lower end, as in the panel

Grid = NDArray[np.float32]


def attention_weights(trace: RunTrace, attention: PackedAttention) -> Chart:
    """Return one captured choice of a run, queries downwards and keys to the right."""
    cells = weight_rows(unpacked(attention))
    chart = (
        alt.Chart(alt.NamedData(name="weights"))
        .mark_rect()
        .encode(
            x=alt.X("key:Q", title="key read (token)", axis=whole_numbers(), scale=_edge()),
            x2="key_end:Q",
            y=alt.Y("query:Q", title="query", axis=whole_numbers(), scale=_edge(is_down=True)),
            y2="query_end:Q",
            color=alt.Color(
                "weight:Q",
                title="weight",
                scale=alt.Scale(type="log", domain=[LEAST, 1], clamp=True, scheme="blues"),
            ),
            tooltip=["query:Q", "key:Q", alt.Tooltip("weight:Q", format=".3g")],
        )
    )
    return finished(chart, {"weights": cells}, description=f"{title(trace, attention)}.")


def title(trace: RunTrace, attention: PackedAttention) -> str:
    """Return what is drawn: the layer, the heads and, of several requests, which."""
    choice = attention.choice
    heads = f"mean of {trace.info.shape.num_attention_heads} heads"
    if choice.head is not None:
        heads = f"head {choice.head}"
    whose = f", request {choice.slot + 1}" if len(trace.requests) > 1 else ""
    return f"Attention weights, layer {choice.layer}, {heads}{whose}"


def caption(attention: PackedAttention) -> str:
    """Return how the weights were captured, and what a cell is."""
    size = _cell_size(_end(attention.maps))
    bins = "" if size == 1 else f"A cell is the largest weight among {size} x {size}. "
    return f"{bins}{attention.note}".strip()


def weight_rows(maps: tuple[AttentionMap, ...]) -> list[Row]:
    """Return one row for each cell that has a weight, of all heads their mean."""
    end = _end(maps)
    if not end:
        return []
    size = _cell_size(end)
    side = ceil(end / size)
    grid: Grid = np.full((side, side), -1, dtype=np.float32)
    for one in maps:
        if one.weights is not None:
            _put(grid, one, size)
    queries, keys = np.nonzero(grid >= 0)
    return [
        {
            "query": int(query) * size,
            "query_end": min(end, (int(query) + 1) * size),
            "key": int(key) * size,
            "key_end": min(end, (int(key) + 1) * size),
            "weight": float(f"{grid[query, key]:.4g}"),
        }
        for query, key in zip(queries, keys, strict=True)
        if key <= query
    ]


def _put(grid: Grid, captured: AttentionMap, size: int) -> None:
    """Raise the cells of the grid to a map's weights."""
    if captured.weights is None:
        return
    weights = captured.weights.astype(np.float32).mean(axis=0)  # [query cell, kv cell]
    rows = captured.query_start + np.arange(weights.shape[0]) * captured.query_bin
    columns = captured.kv_start + np.arange(weights.shape[1]) * captured.kv_bin
    shape = (rows // size)[:, None], (columns // size)[None, :]
    np.fmax.at(grid, np.broadcast_arrays(*shape), weights)


def _end(maps: Sequence[AttentionMap | MapLayout]) -> int:
    """Return one past the newest query."""
    return max((one.query_start + one.query_tokens for one in maps), default=0)


def _cell_size(end: int) -> int:
    return max(1, ceil(end / CELLS))


def _edge(*, is_down: bool = False) -> alt.Scale:
    return alt.Scale(zero=False, nice=False, reverse=is_down)
