"""The K/V cache: bytes after each step, in total or by layers, and tokens in each layer.

The bytes are read from the cache's own tensors; the dashed line is the same number counted from the
model's shape, where its layers keep every token. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import altair as alt

from inference.records.model import LayerType, ModelShape
from inference.records.run import RunTrace
from inference.records.steps import CacheState, StepEvent
from visuals.charts.axes import axis_end, nice_end, picked
from visuals.charts.theme import BAND_COLOURS, DASHED, HOST, KV, Chart, Row, finished, whole_numbers
from visuals.charts.units import amount, counted, mebibytes

BANDS = len(BAND_COLOURS)
_STEP = "step (0 is the first)"
_MIB = "MiB stored"

EXPLANATION = {
    "what": "The keys and values that every layer keeps of each token fed, so that no token has to "
    "be fed twice. Prefill fills one row per prompt token; each decode step adds one row.",
    "how": "Measured: read from the cache's own tensors after each step. The dashed line is "
    "counted from the model's shape.",
    "formula": "bytes per token = 2 \u00d7 layers \u00d7 K/V heads \u00d7 head size \u00d7 bytes "
    "of one number",
    "source": "Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.1.",
}


def cache_growth(trace: RunTrace | None = None) -> Chart:
    """Return the bytes used, allocated (where it differs) and counted after each step."""
    base = alt.Chart(alt.NamedData("cache_growth"))
    x = _step_axis("k:Q")
    tooltip = [
        alt.Tooltip("k:Q", title="step"),
        alt.Tooltip("used:Q", title="used, MiB, measured", format=".4~g"),
        alt.Tooltip("allocated:Q", title="allocated, MiB, measured", format=".4~g"),
        alt.Tooltip("counted:Q", title="counted, MiB", format=".4~g"),
    ]
    used = base.mark_area(
        color=KV, opacity=0.35, interpolate="step-after", line={"color": KV, "strokeWidth": 2.5}
    ).encode(x=x, y=_mib_axis("used:Q"), tooltip=tooltip)
    allocated = base.mark_line(color=HOST, strokeWidth=2, interpolate="step-after")
    formula = base.mark_line(
        color=KV, strokeWidth=2, strokeDash=list(DASHED), interpolate="step-after"
    )
    chart = alt.layer(
        used,
        allocated.encode(x=x, y=_mib_axis("allocated:Q")),
        formula.encode(x=x, y=_mib_axis("counted:Q")),
        _only_step(base).encode(x=x, y=_mib_axis("used:Q"), tooltip=tooltip),
        _ends("cache_growth"),
    )
    datasets = None
    if trace is not None:
        rows = picked(growth_rows(trace.events, trace.info.shape))
        datasets = {"cache_growth": rows, "cache_growth_extent": growth_extent(trace.events)}
    return finished(chart, datasets, description="Area chart: MiB in the K/V cache by step.")


def _only_step(base: alt.Chart) -> alt.Chart:
    """Return a dot for a run of one step so far, whose area has no width yet."""
    return (
        base.transform_joinaggregate(steps="count()")
        .transform_filter("datum.steps == 1")
        .mark_point(color=KV, filled=True, size=110, opacity=1)
    )


def cache_layers(trace: RunTrace | None = None) -> Chart:
    """Return the allocated bytes after each step, stacked by bands of layers."""
    base = alt.Chart(alt.NamedData("cache_layers"))
    order = alt.EncodingSortField(field="band", op="min", order="ascending")
    areas = base.mark_area(interpolate="step-after").encode(
        x=_step_axis("k:Q"),
        y=_mib_axis("mib:Q").stack("zero"),
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
            alt.Tooltip("mib:Q", title="MiB", format=".4~g"),
        ],
    )
    chart = alt.layer(areas, _ends("cache_growth"))
    datasets = None
    if trace is not None:
        rows = picked(layer_rows(trace.events))
        datasets = {"cache_layers": rows, "cache_growth_extent": growth_extent(trace.events)}
    return finished(chart, datasets, description="Stacked areas: MiB by bands of layers and step.")


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


def growth_rows(events: Iterable[StepEvent], shape: ModelShape) -> list[Row]:
    """Return one row for each step; ``allocated`` only where it differs from what is used."""
    return [_growth_row(event, shape) for event in events]


def layer_rows(events: Iterable[StepEvent]) -> list[Row]:
    """Return one row for each step and band of layers; none where layers are not told apart."""
    return [row for event in events for row in _band_rows(event.index, event.cache)]


def growth_extent(events: Sequence[StepEvent]) -> list[Row]:
    """Return one row that holds the far ends of both axes, which grow in steps."""
    largest = max((event.cache.allocated_bytes for event in events), default=0)
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


def caption(events: Sequence[StepEvent], shape: ModelShape) -> str:
    """Return what the newest step left in the cache, in one line."""
    if not events:
        return "Nothing is stored yet."
    cache = events[-1].cache
    used = amount(mebibytes(cache.used_bytes), "MiB")
    rows = sum(row.query_tokens for row in events[-1].rows)
    storing = sum(kind is not LayerType.RECURRENT for kind in shape.layer_types)
    if shape.layer_types and not storing:
        states = amount(mebibytes(cache.state_bytes), "MiB")
        return f"No keys and values: states of {states}, the same after every step."
    expected = counted_bytes(events[-1], shape)
    if expected is None:
        is_each = storing == len(shape.layer_types)
        where = "in each layer" if is_each else f"in {storing} of {len(shape.layer_types)} layers"
        return f"{counted(rows, 'row')} stored {where}; {used} used."
    agreement = "as counted" if expected == cache.used_bytes else f"{expected:,} bytes counted"
    per_token = f"{shape.kv_bytes_per_token:,}"
    return f"+{counted(rows, 'token')} ({per_token} bytes); {used} used, {agreement}."


def counted_bytes(event: StepEvent, shape: ModelShape) -> int | None:
    """Return the K/V bytes of the step's rows from the shape; None where layers drop tokens."""
    keeps_all = all(kind is LayerType.FULL for kind in shape.layer_types)
    if shape.kv_bytes_per_token is None or not keeps_all:
        return None
    return shape.kv_bytes_per_token * sum(row.context_tokens for row in event.rows)


def _growth_row(event: StepEvent, shape: ModelShape) -> Row:
    """Return the row of one step."""
    cache = event.cache
    is_equal = cache.allocated_bytes == cache.used_bytes
    return {
        "k": event.index,
        "used": mebibytes(cache.used_bytes),
        "allocated": None if is_equal else mebibytes(cache.allocated_bytes),
        "counted": mebibytes(counted_bytes(event, shape)),
    }


def _band_rows(k: int, cache: CacheState) -> list[Row]:
    """Return the bytes of each band of neighbouring layers after one step."""
    layers = len(cache.bytes_per_layer)
    bands = min(BANDS, layers)
    edges = [layers * band // bands for band in range(bands + 1)] if bands else []
    return [
        {
            "k": k,
            "band": band,
            "layers": str(low) if high - low == 1 else f"{low}\u2013{high - 1}",
            "mib": mebibytes(sum(cache.bytes_per_layer[low:high])),
        }
        for band, (low, high) in enumerate(pairwise(edges))
    ]


def _step_axis(field: str) -> alt.X:
    """Return the axis of steps."""
    return alt.X(field, title=_STEP, axis=whole_numbers(), scale=alt.Scale(nice=False))


def _mib_axis(field: str) -> alt.Y:
    """Return the axis of stored MiB."""
    scale = alt.Scale(nice=False, zero=True)
    return alt.Y(field, title=_MIB, axis=alt.Axis(tickCount=4, format=",.3~r"), scale=scale)


def _ends(name: str) -> alt.Chart:
    """Return an unseen mark at the far ends of both axes."""
    ends = alt.Chart(alt.NamedData(f"{name}_extent")).mark_point(opacity=0)
    return ends.encode(x=_step_axis("x:Q"), y=_mib_axis("y:Q"))
