"""The attention mask as it grows: what each step adds, and the words that go with the picture.

The picture itself is drawn on a canvas by the live panel, from each step's phase, T and L alone: a
query at position q may read the keys 0..q, or the newest of them where all layers have a window.
No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inference.records import LayerType, ModelShape, Phase, StepEvent
from visuals.units import counted

EXPLANATION = {
    "what": "Which keys each token may read. A row is one token fed, a column one token stored. "
    "Prefill fills a lower triangle in one step; every decode step adds one row, one cell longer "
    "than the row before.",
    "how": "Counted from the lengths of each step: T tokens fed, L tokens in the cache after it. "
    "What the model made of the cells it may read, the weights, is another picture.",
    "formula": "cells of a step = T \u00d7 L \u2212 T \u00d7 (T \u2212 1) / 2",
    "source": "Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.",
}


def mask_steps(events: Iterable[StepEvent], request_id: str) -> list[list[int | str]]:
    """Return phase, T and L of one request's part of each step."""
    return [
        [event.phase.value, row.query_tokens, row.context_tokens]
        for event in events
        for row in event.rows
        if row.request_id == request_id
    ]


def mask_window(shape: ModelShape) -> int | None:
    """Return how many tokens a query may read, itself included; None where all may be read."""
    kept = {kind for kind in shape.layer_types if kind not in (LayerType.RECURRENT, LayerType.NONE)}
    return shape.sliding_window if kept == {LayerType.SLIDING} else None


def allowed_cells(query_tokens: int, context_tokens: int) -> int:
    """Return the cells of a step in which a query may read a key, under a causal mask."""
    return query_tokens * context_tokens - query_tokens * (query_tokens - 1) // 2


def caption(events: Sequence[StepEvent], shape: ModelShape) -> str:
    """Return what the newest step added to the mask, in one line."""
    if not events:
        return "No step yet."
    event = events[-1]
    fed, context = event.rows[0].query_tokens, event.rows[0].context_tokens
    window = mask_window(shape)
    if event.phase is Phase.PREFILL:
        cells = allowed_cells(fed, context)
        drawn = "a triangle" if fed == context else "a block"
        added = f"{drawn} of {counted(cells, 'allowed cell')}: {fed:,} \u00d7 {context:,}"
    else:
        read = context if window is None else min(window, context)
        added = f"one new row of {counted(read, 'cell')}: {counted(read, 'key')} read, 1 stored"
    mixed = LayerType.SLIDING in shape.layer_types and window is None
    return added[0].upper() + added[1:] + (" (layers with full attention)." if mixed else ".")


def description(events: Sequence[StepEvent], shape: ModelShape) -> str:
    """Return the picture in words, for those who cannot see it."""
    if not events:
        return "Attention mask: empty, no step yet."
    prefill = sum(e.rows[0].query_tokens for e in events if e.phase is Phase.PREFILL)
    decode = sum(event.phase is Phase.DECODE for event in events)
    return (
        f"Attention mask: a lower triangle of {counted(prefill, 'row')} from prefill, then "
        f"{counted(decode, 'row')} from decode steps. {caption(events, shape)}"
    )
