"""The K/V cache: bytes after each step, in total or by layers, and tokens in each layer.

Stored bytes hold tokens. Reserved ones are all that the cache's tensors take, with the room for
tokens to come and the padding of a batch. Both are read from the tensors; the dashed line is the
stored bytes counted from the model's shape, where its layers keep every token. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import altair as alt

from inference.counting.what_if import as_stored, scale_bytes
from inference.figures.rows_in_cache import rows_in_cache
from inference.records.model import LayerType
from inference.records.options import CacheKind
from inference.records.run import RunInfo, RunTrace
from inference.records.steps import CacheState, StepEvent
from visuals.charts.axes import axis_end, nice_end, picked
from visuals.charts.theme import (
    BAND_COLOURS,
    DASHED,
    HOST,
    KV,
    SOLID,
    Chart,
    Row,
    finished,
    whole_numbers,
)
from visuals.charts.units import amount, counted, mebibytes

BANDS = len(BAND_COLOURS)
_STEP = "step (0 is the first)"
_MIB = "MiB"
_STORED = "MiB stored"
# Name, colour, dash; the panel's own legend (visuals/panel/scripts/cache.js) names the same lines.
_LINES = (
    ("stored", KV, SOLID),
    ("reserved", HOST, SOLID),
    ("counted", KV, DASHED),
)

EXPLANATION = {
    "what": "The keys and values that every layer keeps of each token fed, so that no token has to "
    "be fed twice.",
    "read": "Prefill fills one row per prompt token; each decode step adds one row. Stored bytes "
    "hold tokens; reserved ones are the whole tensors, with room for tokens to come. The dashed "
    "line is the stored bytes counted from the model's shape.",
    "how": "Measured: read from the cache's own tensors after each step. A static cache reserves "
    "room for the whole run; the CPU kernels let a dynamic one grow in blocks of 256 tokens.",
    "formula": "bytes per token = 2 \u00d7 layers \u00d7 K/V heads \u00d7 head size \u00d7 bytes "
    "of one number",
    "source": "Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.1.",
}


def cache_growth(trace: RunTrace | None = None) -> Chart:
    """Return the bytes stored, reserved (where it differs) and counted after each step."""
    base = alt.Chart(alt.NamedData("cache_growth"))
    x = _step_axis("k:Q")
    tooltip = [
        alt.Tooltip("k:Q", title="step"),
        alt.Tooltip("used:Q", title="stored, MiB, measured", format=".4~g"),
        alt.Tooltip("allocated:Q", title="reserved, MiB, measured", format=".4~g"),
        alt.Tooltip("counted:Q", title="stored, MiB, counted", format=".4~g"),
    ]
    used = base.mark_area(color=KV, opacity=0.35, interpolate="step-after").encode(
        x=x, y=_mib_axis("used:Q"), tooltip=tooltip
    )
    fields = ("used:Q", "allocated:Q", "counted:Q")
    chart = alt.layer(
        used,
        *(_line(base, field, name) for field, (name, _, _) in zip(fields, _LINES, strict=True)),
        _only_step(base).encode(x=x, y=_mib_axis("used:Q"), tooltip=tooltip),
        _ends("cache_growth"),
    )
    datasets = None
    if trace is not None:
        rows = picked(growth_rows(trace.events, trace.info))
        datasets = {"cache_growth": rows, "cache_growth_extent": growth_extent(trace.events)}
    return finished(chart, datasets, description="Area chart: MiB in the K/V cache by step.")


def _line(base: alt.Chart, field: str, name: str) -> alt.Chart:
    """Return the line of one column of the rows, named in the legend."""
    names: list[str | alt.FieldName] = [one for one, _, _ in _LINES]
    legend = alt.Legend(orient="top", symbolType="stroke")
    tones = alt.Scale(domain=names, range=[tone for _, tone, _ in _LINES])
    dashes = alt.Scale(domain=names, range=[list(dash) for _, _, dash in _LINES])
    line = base.transform_calculate(line=f"'{name}'")
    return line.mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=_step_axis("k:Q"),
        y=_mib_axis(field),
        color=alt.Color("line:N", title=None, scale=tones, legend=legend),
        strokeDash=alt.StrokeDash("line:N", title=None, scale=dashes, legend=legend),
    )


def _only_step(base: alt.Chart) -> alt.Chart:
    """Return a dot for a run of one step so far, whose area has no width yet."""
    return (
        base.transform_joinaggregate(steps="count()")
        .transform_filter("datum.steps == 1")
        .mark_point(color=KV, filled=True, size=110, opacity=1)
    )


def cache_layers(trace: RunTrace | None = None) -> Chart:
    """Return the stored bytes after each step, stacked by bands of layers."""
    base = alt.Chart(alt.NamedData("cache_layers"))
    order = alt.EncodingSortField(field="band", op="min", order="ascending")
    areas = base.mark_area(interpolate="step-after").encode(
        x=_step_axis("k:Q"),
        y=_mib_axis("mib:Q", _STORED).stack("zero"),
        order=alt.Order("band:Q"),
        color=alt.Color(
            "layers:N",
            title="layers",
            sort=order,
            scale=alt.Scale(range=list(BAND_COLOURS)),
        ),
        tooltip=[
            alt.Tooltip("k:Q", title="step"),
            alt.Tooltip("layers:N"),
            alt.Tooltip("mib:Q", title="stored, MiB, measured", format=".4~g"),
        ],
    )
    chart = alt.layer(areas, _ends("cache_layers", _STORED))
    datasets = None
    if trace is not None:
        rows = picked(layer_rows(trace.events))
        datasets = {"cache_layers": rows, "cache_layers_extent": layer_extent(trace.events)}
    return finished(
        chart, datasets, description="Stacked areas: MiB stored by bands of layers and step."
    )


def tokens_per_layer(trace: RunTrace | None = None) -> Chart:
    """Return a bar for each layer: the tokens whose K/V it holds after the newest step."""
    base = alt.Chart(alt.NamedData("tokens_per_layer"))
    bars = base.mark_bar(color=KV).encode(
        x=alt.X("from:Q", title="layer", axis=whole_numbers(), scale=alt.Scale(nice=False)),
        x2="to:Q",
        y2=alt.datum(0),
        y=alt.Y("tokens:Q", title="tokens stored", axis=alt.Axis(tickCount=4, tickMinStep=1)),
        tooltip=[alt.Tooltip("k:Q", title="layer"), alt.Tooltip("tokens:Q")],
    )
    ends = alt.Chart(alt.NamedData("tokens_per_layer_extent")).mark_point(opacity=0)
    chart = alt.layer(bars, ends.encode(y=alt.Y("y:Q", title="tokens stored")))
    datasets = None
    if trace is not None:
        datasets = {
            "tokens_per_layer": held_rows(trace.events),
            "tokens_per_layer_extent": held_extent(trace.events),
        }
    return finished(chart, datasets, description="Bar chart: tokens stored in each layer.")


def growth_rows(events: Sequence[StepEvent], info: RunInfo, *, begin: int = 0) -> list[Row]:
    """Return one row for each step; ``allocated`` only where it differs from what is used.

    Args:
        events: The run's steps from its beginning.
        info: What they were made with.
        begin: The first step that gets a row.
    """
    return [_growth_row(events, at, info) for at in range(begin, len(events))]


def layer_rows(events: Iterable[StepEvent]) -> list[Row]:
    """Return one row for each step and band of layers; none where layers are not told apart."""
    return [row for event in events for row in _band_rows(event.index, event.cache)]


def growth_extent(events: Sequence[StepEvent]) -> list[Row]:
    """Return one row that holds the far ends of both axes, which grow in steps."""
    return _extent(events, max((event.cache.allocated_bytes for event in events), default=0))


def layer_extent(events: Sequence[StepEvent]) -> list[Row]:
    """Return the same of the stored bytes alone."""
    return _extent(events, max((event.cache.used_bytes for event in events), default=0))


def _extent(events: Sequence[StepEvent], largest: int) -> list[Row]:
    last = events[-1].index if events else 0
    return [{"x": axis_end(last), "y": nice_end(mebibytes(largest) or 0.0)}]


def held_rows(events: Sequence[StepEvent]) -> list[Row]:
    """Return one row for each layer, as the newest step left it."""
    if not events:
        return []
    held = events[-1].cache.tokens_per_layer
    return [
        {"k": layer, "from": layer - 0.4, "to": layer + 0.4, "tokens": tokens}
        for layer, tokens in enumerate(held)
    ]


def held_extent(events: Sequence[StepEvent]) -> list[Row]:
    """Return one row that holds the far end of the axis of tokens."""
    held = events[-1].cache.tokens_per_layer if events else ()
    return [{"y": axis_end(max(held, default=0))}]


def caption(events: Sequence[StepEvent], info: RunInfo) -> str:
    """Return what the newest step left in the cache, in one line."""
    if not events:
        return "Nothing is stored yet."
    shape, cache = info.shape, events[-1].cache
    held = f"{amount(mebibytes(cache.used_bytes), 'MiB')} stored"
    if cache.allocated_bytes > cache.used_bytes:
        held += f" of {amount(mebibytes(cache.allocated_bytes), 'MiB')} reserved"
    rows = sum(row.query_tokens for row in events[-1].rows)
    storing = sum(kind is not LayerType.RECURRENT for kind in shape.layer_types)
    if shape.layer_types and not storing:
        states = amount(mebibytes(cache.state_bytes), "MiB")
        return f"No keys and values: states of {states}, the same after every step."
    per_token = as_stored(shape, info.cache).kv_bytes_per_token
    if per_token is None or counted_bytes(contexts(events), info) is None:
        is_each = storing == len(shape.layer_types)
        where = "in each layer" if is_each else f"in {storing} of {len(shape.layer_types)} layers"
        return f"+{counted(rows, 'row')} {where}; {held}."
    size = f"{per_token:,} bytes{' each' if rows > 1 else ''}"
    kind = ", quantised" if info.cache is CacheKind.QUANTISED else ""
    return f"+{counted(rows, 'token')} ({size}{kind}); {held}."


def contexts(events: Sequence[StepEvent], at: int = -1) -> tuple[int, ...]:
    """Return the tokens of each row that the cache holds after a step."""
    return tuple(row.context_tokens for row in rows_in_cache(events, at))


def counted_bytes(contexts: Sequence[int], info: RunInfo) -> int | None:
    """Return the K/V bytes of rows of so many tokens; None where layers drop tokens."""
    shape = as_stored(info.shape, info.cache)
    keeps_all = all(kind is LayerType.FULL for kind in shape.layer_types)
    if shape.kv_bytes_per_token is None or not keeps_all:
        return None
    return (
        shape.kv_bytes_per_token * sum(contexts) + scale_bytes(info.cache) * shape.num_hidden_layers
    )


def _growth_row(events: Sequence[StepEvent], at: int, info: RunInfo) -> Row:
    """Return the row of one step."""
    event = events[at]
    cache = event.cache
    is_equal = cache.allocated_bytes == cache.used_bytes
    return {
        "k": event.index,
        "used": mebibytes(cache.used_bytes),
        "allocated": None if is_equal else mebibytes(cache.allocated_bytes),
        "counted": mebibytes(counted_bytes(contexts(events, at), info)),
    }


def _band_rows(k: int, cache: CacheState) -> list[Row]:
    """Return the stored bytes of each band of neighbouring layers after one step."""
    stored = cache.stored_bytes_per_layer
    layers = len(stored)
    bands = min(BANDS, layers)
    edges = [layers * band // bands for band in range(bands + 1)] if bands else []
    return [
        {
            "k": k,
            "band": band,
            "layers": str(low) if high - low == 1 else f"{low}\u2013{high - 1}",
            "mib": mebibytes(sum(stored[low:high])),
        }
        for band, (low, high) in enumerate(pairwise(edges))
    ]


def _step_axis(field: str) -> alt.X:
    """Return the axis of steps."""
    return alt.X(field, title=_STEP, axis=whole_numbers(), scale=alt.Scale(nice=False))


def _mib_axis(field: str, title: str = _MIB) -> alt.Y:
    """Return an axis of MiB."""
    scale = alt.Scale(nice=False, zero=True)
    return alt.Y(field, title=title, axis=alt.Axis(tickCount=4, format=",.3~r"), scale=scale)


def _ends(name: str, title: str = _MIB) -> alt.Chart:
    """Return an unseen mark at the far ends of both axes."""
    ends = alt.Chart(alt.NamedData(f"{name}_extent")).mark_point(opacity=0)
    return ends.encode(x=_step_axis("x:Q"), y=_mib_axis("y:Q", title))
