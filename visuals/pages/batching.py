"""The Batching page: weights read once, every row's own K/V, and where the benefit ends.

A thin script: it never loops or sleeps. The sweep belongs to the hub and runs in the engine.
"""

from __future__ import annotations

import streamlit as st

from inference.process.messages import ModelReady, SweepBatches
from inference.records.batches import BatchSweep
from inference.runs.recordings import recorded_measurements
from visuals.charts.batching import BatchFacts, disturbed_sentence, gain_sentences, limit_sentences
from visuals.charts.units import counted, date_text
from visuals.live.hub import Hub
from visuals.pages.batching_charts import show_charts
from visuals.pages.batching_elsewhere import elsewhere_section
from visuals.pages.batching_runs import runs_section
from visuals.pages.markdown import escaped
from visuals.pages.measure_controls import (
    POLL_S,
    engine_activity,
    measure_controls,
    watch_engine,
    without_model,
)
from visuals.pages.recorded import recorded_line
from visuals.pages.roofs import roofs_caption
from visuals.pages.session import bound, enter_page

BATCHES = (1, 2, 4, 8, 16, 32)
CONTEXTS = {"64": 64, "512": 512, "2,048": 2048, "8,192": 8192}


def batching_page(hub: Hub) -> None:
    """Draw the page."""
    enter_page("batching")
    drawn = engine_activity(hub)
    here, elsewhere, requests = st.tabs(
        ["On this machine", "Another model or device", "Latency per request"]
    )
    ready = drawn.ready
    with here:
        if ready is None:
            st.info(without_model(hub, "it can be measured once it is loaded"))
            _recorded(is_alone=True)
        else:
            _here(hub, ready)
    with elsewhere:
        elsewhere_section(hub, ready)
    with requests:
        runs_section(hub)
    watch_engine(hub, drawn)


def _here(hub: Hub, ready: ModelReady) -> None:
    left, right = st.columns([4, 8], gap="medium")
    with left:
        st.markdown(
            f"One decode step of **{escaped(ready.model_id.rpartition('/')[2])}** reads all "
            "weights once, however many rows it has, and each row's own K/V. More rows share the "
            "weights; the K/V adds up."
        )
        batches, contexts = _choices(ready)
        measure_controls(
            hub,
            SweepBatches(batches=batches, contexts=contexts),
            label="Measure the sweep",
            key="batches",
        )
        _limits(hub, ready, batches, contexts)
    with right:
        _pictures(hub, ready, batches, contexts)


def _choices(ready: ModelReady) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the batches and contexts asked for; at least one of each."""
    batches = st.pills(
        "Rows in the batch",
        list(BATCHES),
        selection_mode="multi",
        **bound("sweep_batches"),
    )
    limit = ready.context_limit
    names = [name for name, context in CONTEXTS.items() if limit is None or context <= limit]
    chosen = st.pills(
        "Context per row, in tokens",
        names,
        selection_mode="multi",
        **bound("sweep_contexts", names),
    )
    contexts = tuple(sorted(CONTEXTS[name] for name in chosen or names[:1]))
    return tuple(sorted(batches or BATCHES[:1])), contexts


def _facts(
    hub: Hub, ready: ModelReady, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> BatchFacts:
    status = hub.measure_status()
    return BatchFacts(
        shape=ready.shape,
        batches=batches,
        contexts=contexts,
        ceilings=status.ceilings.ceilings if status.ceilings is not None else None,
        sweep=_sweep(hub, ready),
        memory_bytes=ready.device.memory_bytes,
    )


def _sweep(hub: Hub, ready: ModelReady) -> BatchSweep | None:
    """Return what was measured on the loaded model; another's step times do not belong here."""
    sweep = hub.measure_status().batches
    is_ours = sweep is not None and sweep.shape == ready.shape and sweep.device == ready.device
    return sweep if is_ours else None


def _limits(
    hub: Hub, ready: ModelReady, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> None:
    facts = _facts(hub, ready, batches, contexts)
    if facts.ceilings is None:
        st.info(
            "The counted lines come with this machine's roofs, which are measured "
            "automatically once the engine is idle, or on the **Roofline** page."
        )
        return
    st.markdown("**Where the benefit ends**, counted from the measured roofs:")
    st.markdown("\n".join(f"- {sentence}" for sentence in limit_sentences(facts)))
    st.caption(roofs_caption(facts.ceilings))


def _pictures(
    hub: Hub, ready: ModelReady, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> None:
    """Show what is measured and counted; during a sweep, as far as it has come."""
    is_sweeping = hub.measure_status().kind is SweepBatches

    @st.fragment(run_every=POLL_S * 2 if is_sweeping else None)
    def pictures() -> None:
        facts = _facts(hub, ready, batches, contexts)
        if facts.points or facts.predictions:
            show_charts(facts, key="here")
        is_recorded = facts.sweep is None and not is_sweeping and _recorded()
        if not (facts.points or facts.predictions or is_recorded):
            st.info(
                "Nothing has been measured yet. The sweep takes a minute or two on a small machine."
            )
        if facts.sweep is not None:
            _measured_text(facts.sweep)

    pictures()


def _recorded(*, is_alone: bool = False) -> bool:
    """Draw the recorded sweep, until there is one made here; tell whether there is one at all.

    Args:
        is_alone: Nothing can be measured at the moment.
    """
    recorded = recorded_measurements()
    if recorded is None:
        return False
    sweep = recorded.batches
    later = "Once the model is loaded, press" if is_alone else "Press"
    recorded_line(
        "A recorded sweep",
        sweep.device,
        sweep.measured_at,
        sweep.model_id,
        f"{later} **Measure the sweep** for that of the loaded model on this machine; it takes a "
        "minute or two on a small one.",
    )
    facts = BatchFacts(
        shape=sweep.shape,
        batches=tuple(sorted({point.batch for point in sweep.points})),
        contexts=tuple(sorted({point.context_tokens for point in sweep.points})),
        ceilings=recorded.ceilings.ceilings,
        sweep=sweep,
        memory_bytes=sweep.device.memory_bytes,
    )
    show_charts(facts, key="recorded")
    _measured_text(sweep)
    return True


def _measured_text(sweep: BatchSweep) -> None:
    """Say what the sweep showed, where it was made, and what was left out."""
    for sentence in gain_sentences(sweep):
        st.markdown(f"- {sentence}")
    if disturbed := disturbed_sentence(sweep):
        st.warning(disturbed)
    points = counted(len(sweep.points), "point")
    part = "" if sweep.is_whole else " so far"
    st.caption(
        f"{points} **measured**{part} on {escaped(sweep.device.name)} in "
        f"{escaped(sweep.device.dtype)}, {date_text(sweep.measured_at)}: the median of three steps "
        "each and their spread, on a cache filled in advance; disturbed steps are measured again."
    )
    for left in sweep.left_out:
        st.warning(
            f"{left.batch} rows at {left.context_tokens:,} tokens left out: {escaped(left.reason)}."
        )
