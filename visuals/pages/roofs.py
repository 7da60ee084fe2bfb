"""The section of this machine's roofs: measured here, with their spread, and how."""

from __future__ import annotations

import streamlit as st

from inference.counting.costs import step_cost
from inference.process.messages import MeasureCeilings, ModelReady
from inference.records.costs import Ceilings, StepCost
from inference.records.model import ModelShape
from inference.records.rooflines import MeasuredCeilings, SweepPoint
from inference.runs.recordings import Measurements, recorded_measurements
from visuals.charts.roofs import sweep_chart
from visuals.charts.units import amount, date_text, percent, scaled, significant
from visuals.charts.what_if import counted_roofline, roofs_text
from visuals.live.hub import Hub
from visuals.pages.drawn import draw_chart
from visuals.pages.markdown import escaped
from visuals.pages.measure_controls import measure_controls
from visuals.pages.recorded import recorded_line

CHART_HEIGHT = 420
PROMPT_TOKENS = 512
LARGEST_SPREAD = 0.4  # of the median; the shared machines this was tried on gave 0.1 to 0.3 idle


def roofs_section(hub: Hub, ready: ModelReady | None, *, is_ready: bool) -> None:
    """Draw the roofs, the button that measures them, and the sweeps they come from.

    Args:
        hub: Whose engine measures.
        ready: The model held; None while there is none.
        is_ready: Something can be measured.
    """
    own = hub.measure_status().ceilings
    recorded = recorded_measurements() if own is None else None
    measured = recorded.ceilings if recorded is not None else own
    left, right = st.columns([5, 7], gap="medium")
    with left:
        _introduction(has_own=own is not None)
        if is_ready:
            measure_controls(
                hub,
                MeasureCeilings(),
                label="Measure again" if own is not None else "Measure the roofs",
                key="roofs",
            )
        if recorded is not None:
            _recorded(recorded)
        if measured is not None:
            _figures(measured)
    with right:
        if measured is None:
            return
        if recorded is not None:
            _picture(recorded.batches.model_id, recorded.batches.shape, measured)
        elif ready is not None:
            _picture(ready.model_id, ready.shape, measured)
        else:
            _picture("", None, measured)
        with st.expander("The sweeps behind both roofs"):
            _sweeps(measured)


def roofs_caption(ceilings: Ceilings) -> str:
    """Return both roofs in Markdown, and where they come from."""
    return f"Roofs: {roofs_text(ceilings)}: {escaped(ceilings.method)}."


def _recorded(recorded: Measurements) -> None:
    recorded_line(
        "Recorded roofs",
        recorded.ceilings.device,
        recorded.ceilings.measured_at,
        "",
        "This machine's own take their place as soon as they are measured.",
    )


def _introduction(*, has_own: bool) -> None:
    st.markdown(
        "**Two roofs bound every step**: how fast this device reads memory, and how fast it "
        "multiplies matrices. Both are measured on this machine, by the engine, and kept."
    )
    if not has_own:
        st.info(
            "The roofs are not measured yet on this machine. That happens automatically once the "
            "engine is idle, in ten seconds at most; let nothing else run meanwhile.",
            icon=":material/roofing:",
        )


def _figures(measured: MeasuredCeilings) -> None:
    ceilings = measured.ceilings
    with st.container(key="roof-figures"):
        _figure("Memory read, measured", scaled(ceilings.bytes_per_s, "B/s"), measured.best_read)
        _figure(
            f"Matrix product in {escaped(measured.dtype)}, measured",
            scaled(ceilings.flops_per_s, "FLOP/s"),
            measured.best_product,
        )
        st.metric(
            "Ridge point, where they meet, measured",
            amount(ceilings.ridge_flops_per_byte, "FLOP/byte"),
            help="Peak / bandwidth. A step that does fewer operations per byte moved is "
            "memory-bound; a step that does more is compute-bound.",
        )
    spread_ratio = max(measured.best_read.spread_ratio, measured.best_product.spread_ratio)
    if spread_ratio > LARGEST_SPREAD:
        st.warning(
            f"The measurements behind these roofs vary by {amount(percent(spread_ratio), '%')} of "
            "the median, so something else was using this machine and the roofs may be too low. "
            "Measure again once it is idle."
        )
    if measured.is_disturbed:
        st.warning(
            "Other programs disturbed the measurement behind a roof each time it was made, up to "
            "four times, so the roof may be too low. Measure again once the machine is idle."
        )
    st.caption(
        f"{escaped(measured.machine)}; torch {escaped(measured.torch_version)}; "
        f"{date_text(measured.measured_at)}. Last cache: {_cache_text(measured.last_cache_bytes)}. "
        "A run keeps the roofs that were measured when it was made, so its ridge may be another."
    )


def _picture(model_id: str, shape: ModelShape | None, measured: MeasuredCeilings) -> None:
    """Show the roofs, and where steps of a model would lie at best."""
    ceilings = measured.ceilings
    steps: dict[str, StepCost] = {}
    if shape is not None and shape.matrices:
        steps["prefill"] = step_cost(shape, [(PROMPT_TOKENS, PROMPT_TOKENS)])
        steps["decode"] = step_cost(shape, [(1, PROMPT_TOKENS)])
    draw_chart(
        counted_roofline(ceilings, steps, name="here").properties(height=CHART_HEIGHT),
        key="roofs-here",
    )
    if steps:
        st.caption(
            f"Rings: a prompt of {PROMPT_TOKENS} tokens and a decode step of "
            f"{escaped(model_id)}, counted, as fast as the roofs allow. What they reach is "
            "on the Live page."
        )


def _figure(label: str, value: str, point: SweepPoint) -> None:
    spread = amount(percent(point.spread_ratio), "%")
    st.metric(
        label,
        value,
        help=f"Best of {point.repeats} timings: {escaped(point.label)}. From best to worst: "
        f"{spread} of the median.",
    )


def _sweeps(measured: MeasuredCeilings) -> None:
    """Show every size of both sweeps, since a roof is only as good as its sweep."""
    draw_chart(
        sweep_chart(measured.reads, "GB/s", "reads of memory"),
        key="read-sweep",
    )
    draw_chart(
        sweep_chart(measured.products, "GFLOP/s", "matrix products"),
        key="product-sweep",
    )


def _cache_text(count: int | None) -> str:
    return "unknown" if count is None else f"{significant(count / 2**20)} MiB"
