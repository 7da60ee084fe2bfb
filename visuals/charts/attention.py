"""The attention mask as it grows: what each step adds, and the words that go with the picture.

The picture itself is drawn on a canvas by the live panel, from each step's phase, T and L alone: a
query at position q may read the keys 0..q, or those of them that its layer's window or chunk holds.
The weights over the same cells come by a route of their own (visuals/live/attention_feed.py).
No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from inference.counting.costs import attended_pairs
from inference.figures.disturbance import undisturbed
from inference.process.orders import middle_layer
from inference.records.model import LayerType, ModelShape
from inference.records.steps import Phase, RowStep, StepEvent
from visuals.charts.units import amount, counted, milliseconds

Fed = Sequence[tuple[Phase, RowStep]]  # one request's part of each step

EXPLANATION = {
    "what": "Which stored tokens each token reads: a row is one token fed, a column one token "
    "stored. Mask: the keys that each token may read. Weights: how much of its attention the "
    "chosen layer and head gave to each of them.",
    "read": "Prefill fills a lower triangle, chunk by chunk if the prompt is fed in chunks; every "
    "decode step adds one row. The last row of prefill (x0) selected the first output token. The "
    "weights of a row sum to 1. Query heads that share a K/V head are framed together. Where there "
    "are more tokens than cells, a cell shows the largest weight in it; the row under the pointer "
    "is exact.",
    "how": "The mask is counted from the lengths of each step and the layer's own window. The "
    "weights are measured: the queries, keys, mask and scale that the model's own attention was "
    "given, or the softmax it computed, in the layer chosen. The softmax is computed after the "
    "step, outside its step time, so a captured step does not count as observed. Of a run that is "
    "over, another layer or head is computed by feeding its tokens to the model once; the line "
    "under the picture then says so.",
    "formula": "weights = softmax(Q \u00d7 K\u1d40 / \u221ahead size + mask); cells of a step = "
    "T \u00d7 L \u2212 T \u00d7 (T \u2212 1) / 2",
    "source": "Vaswani et al. 2017, Attention Is All You Need, sections 3.2.1 and 3.2.3.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """What the attention of some layers may read.

    Attributes:
        window: Tokens that a query may read, itself included; of a chunk, those up to its end.
        attends: True when it reads keys at all.
    """

    type: LayerType
    window: int | None = None
    attends: bool = True

    @property
    def label(self) -> str:
        """The kind in words."""
        if self.type is LayerType.RECURRENT:
            return "recurrent state"
        if self.type is LayerType.NONE:
            return "another layer's K/V" if self.attends else "no attention"
        if self.window is None:
            return "full attention"
        is_chunked = self.type is LayerType.CHUNKED
        return f"chunks of {self.window:,}" if is_chunked else f"sliding window {self.window:,}"

    @property
    def short(self) -> str:
        """The kind in as few words as a narrow picker has room for."""
        if self.window is not None:
            return f"{'chunks' if self.type is LayerType.CHUNKED else 'window'} {self.window:,}"
        if not self.attends:
            return "recurrent" if self.type is LayerType.RECURRENT else "none"
        return "shared K/V" if self.type is LayerType.NONE else "full"


def layer_kinds(shape: ModelShape) -> tuple[LayerKind, ...]:
    """Return the kind of each layer."""
    return tuple(_layer_kind(layer, kind, shape) for layer, kind in enumerate(shape.layer_types))


def layer_items(shape: ModelShape) -> dict[str, object]:
    """Return what a panel must know of the layers: their kinds, and the heads of each."""
    kinds = layer_kinds(shape)
    distinct = list(dict.fromkeys(kinds))
    return {
        "kinds": [
            {
                "label": kind.label,
                "short": kind.short,
                "window": kind.window,
                "chunked": kind.type is LayerType.CHUNKED,
                "attends": kind.attends,
            }
            for kind in distinct
        ],
        "of_layer": [distinct.index(kind) for kind in kinds],
        "default": middle_layer(shape),
        "heads": shape.num_attention_heads,
        "kv_heads": shape.num_key_value_heads,
    }


def kind_words(
    events: Sequence[StepEvent], shape: ModelShape, request_id: str | None = None
) -> list[dict[str, str]]:
    """Return caption and description for each distinct kind of layer, as in ``layer_items``.

    Args:
        events: The steps so far.
        shape: The model's.
        request_id: Whose rows are described; None for a run of one request.
    """
    fed = _fed(events, request_id)
    return [
        {
            "caption": _caption(fed, shape, kind),
            "description": _description(fed, shape, kind),
        }
        for kind in dict.fromkeys(layer_kinds(shape))
    ]


def capture_cost(events: Sequence[StepEvent]) -> str:
    """Return what capturing the weights cost, in one line; empty when none were captured."""
    decode = [event for event in events if event.phase is Phase.DECODE and not event.cold]
    captures_s = [event.capture_s for event in decode if event.capture_s is not None]
    if not captures_s:
        return ""
    usual = undisturbed(event for event in decode if not event.observed)
    with_s = [event.duration_s for event in usual if event.capture_s is not None]
    without_s = [event.duration_s for event in usual if event.capture_s is None]
    cost = (
        f"Capturing: {amount(milliseconds(median(captures_s)), 'ms')} after each step, not counted"
    )
    if with_s and without_s:
        timings = [
            amount(milliseconds(median(step_times_s)), "ms") for step_times_s in (with_s, without_s)
        ]
        return f"{cost}; median step {timings[0]} with it, {timings[1]} without."
    if with_s:
        return f"{cost}; median step {amount(milliseconds(median(with_s)), 'ms')} with it."
    return f"{cost}."


def mask_rows(
    events: Iterable[StepEvent], request_ids: Sequence[str]
) -> list[list[str | list[list[int]]]]:
    """Return phase, and number, T and L of each request that was fed, for each step of a batch."""
    number = {request_id: n for n, request_id in enumerate(request_ids)}
    return [
        [
            event.phase.value,
            [[number[r.request_id], r.query_tokens, r.context_tokens] for r in event.rows],
        ]
        for event in events
    ]


def mask_steps(events: Iterable[StepEvent], request_id: str) -> list[list[int | str]]:
    """Return phase, T and L of one request's part of each step."""
    return [
        [event.phase.value, row.query_tokens, row.context_tokens]
        for event in events
        for row in event.rows
        if row.request_id == request_id
    ]


def caption(events: Sequence[StepEvent], shape: ModelShape, kind: LayerKind | None = None) -> str:
    """Return what the newest step added to the mask, in one line.

    Args:
        events: The steps so far.
        shape: The model's.
        kind: Of the layers shown; None for those with full attention, or for all where they agree.
    """
    return _caption(_fed(events[-1:]), shape, kind)


def description(
    events: Sequence[StepEvent], shape: ModelShape, kind: LayerKind | None = None
) -> str:
    """Return the picture in words, for those who cannot see it."""
    return _description(_fed(events), shape, kind)


def _fed(events: Sequence[StepEvent], request_id: str | None = None) -> Fed:
    """Return what each step fed of a request; None for a run of one request."""
    if request_id is None:
        return [(event.phase, event.rows[0]) for event in events]
    return [
        (event.phase, row) for event in events for row in event.rows if row.request_id == request_id
    ]


def _caption(fed: Fed, shape: ModelShape, kind: LayerKind | None) -> str:
    if not fed:
        return "No step yet."
    phase, row = fed[-1]
    shown = _usual_kind(shape) if kind is None else kind
    if not shown.attends:
        return f"{shown.label[0].upper()}{shown.label[1:]}: no query reads a key in this layer."
    size = (row.query_tokens, row.context_tokens)
    is_prefill = phase is Phase.PREFILL
    added = _prefill_words(size, shown) if is_prefill else _decode_words(size, shown)
    is_named = shown.window is not None or len(set(layer_kinds(shape))) > 1
    return f"{added} ({shown.label})." if is_named else f"{added}."


def _description(fed: Fed, shape: ModelShape, kind: LayerKind | None) -> str:
    if not fed:
        return "Attention mask: empty, no step yet."
    shown = _usual_kind(shape) if kind is None else kind
    words = _caption(fed, shape, kind)
    if not shown.attends:
        return f"Attention mask: empty. {words}"
    prefill = sum(row.query_tokens for phase, row in fed if phase is Phase.PREFILL)
    decode = sum(phase is Phase.DECODE for phase, _ in fed)
    _, newest = fed[-1]
    is_cut = shown.window is not None and newest.context_tokens > shown.window
    is_chunked = shown.type is LayerType.CHUNKED
    cut = "triangles along the diagonal, " if is_chunked else "a band below the diagonal, "
    return (
        f"Attention mask: {cut if is_cut else 'a lower triangle of '}"
        f"{counted(prefill, 'row')} from prefill, then "
        f"{counted(decode, 'row')} from decode steps. {words}"
    )


def _prefill_words(size: tuple[int, int], kind: LayerKind) -> str:
    """Return what a step of prefill added."""
    fed, context = size
    cells = _cells(size, kind)
    if kind.window is not None and context > kind.window:
        return f"A band of {counted(cells, 'allowed cell')}: {fed:,} \u00d7 {context:,}"
    if fed == context:
        return f"A triangle of {counted(cells, 'allowed cell')}: {fed:,} \u00d7 {context:,}"
    before = context - fed
    shapes = f"rectangle {fed:,} \u00d7 {before:,} and a triangle of {counted(fed, 'row')}"
    return f"A chunk: a {shapes}, {counted(cells, 'allowed cell')}"


def _decode_words(size: tuple[int, int], kind: LayerKind) -> str:
    """Return what a decode step added."""
    read = _cells(size, kind)
    return f"One new row of {counted(read, 'cell')}: {counted(read, 'key')} read, 1 stored"


def _cells(size: tuple[int, int], kind: LayerKind) -> int:
    """Return the cells in which a query of the step may read a key."""
    return attended_pairs(*size, kind.window, is_chunked=kind.type is LayerType.CHUNKED)


def _usual_kind(shape: ModelShape) -> LayerKind:
    """Return the kind to show where none is chosen."""
    kinds = layer_kinds(shape)
    full = LayerKind(type=LayerType.FULL)
    return kinds[middle_layer(shape)] if kinds and full not in kinds else full


def _layer_kind(layer: int, kind: LayerType, shape: ModelShape) -> LayerKind:
    """Return the kind of one layer, from the shape's own list where it has one."""
    is_windowed = kind in (LayerType.SLIDING, LayerType.CHUNKED)
    window = shape.sliding_window if is_windowed else None
    if shape.windows_per_layer:
        window = shape.windows_per_layer[layer]
    attends = kind not in (LayerType.RECURRENT, LayerType.NONE)
    if shape.pair_flops_per_layer:
        attends = shape.pair_flops_per_layer[layer] > 0
    return LayerKind(type=kind, window=window, attends=attends)
