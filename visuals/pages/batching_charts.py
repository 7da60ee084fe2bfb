"""The charts of a batch's time, rates and bytes, the same for this machine and for another."""

from __future__ import annotations

import streamlit as st

from visuals.charts.batching import (
    BatchFacts,
    batch_bytes,
    batch_rates,
    batch_times,
    sequence_rates,
)
from visuals.pages.drawn import draw_chart
from visuals.pages.session import bound, field_of

CHART_HEIGHT = 290


def show_charts(facts: BatchFacts, *, key: str) -> None:
    """Show the three figures over the batch, and the bytes."""
    st.caption(
        "Solid with points: **measured**, each with its spread; hollow where other programs "
        "disturbed it. Dashed: **counted**, a lower bound on time and an upper bound on rates, as "
        "far as the rows fit in memory. Triangle: from here on, K/V takes more bytes than the "
        "weights. Dotted line: linear operations become compute-bound."
    )
    left, right = st.columns(2)
    for box, chart, name in (
        (left, batch_times, "times"),
        (right, batch_rates, "rates"),
        (left, sequence_rates, "rows"),
    ):
        with box:
            draw_chart(
                chart(facts).properties(height=CHART_HEIGHT),
                key=f"{key}-batch-{name}",
            )
    with right:
        _bytes(facts, key=key)


def _bytes(facts: BatchFacts, *, key: str) -> None:
    names = {f"{context:,}": context for context in facts.contexts}
    widget = bound(f"{key}-bytes-context", list(names), first=list(names)[-1])
    context = names[field_of(widget["key"])]
    draw_chart(
        batch_bytes(facts, context).properties(height=CHART_HEIGHT),
        key=f"{key}-batch-bytes",
    )
    st.segmented_control(
        "Bytes at a context of",
        list(names),
        **widget,
        help="Weights are read once per step, K/V once for every row. Pale: more than the device's "
        "memory holds.",
    )
