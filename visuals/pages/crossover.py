"""The section on the crossover: counted and measured, and moved by the reader."""

from __future__ import annotations

import streamlit as st

from inference.counting.costs import Attention, step_cost
from inference.counting.roofline import bound_of, lower_bound_seconds
from inference.process.messages import ModelReady, SweepTokens
from inference.records.costs import Ceilings
from inference.records.steps import Phase
from inference.runs.recordings import Measurements, recorded_measurements
from visuals.charts.crossover import (
    COUNTS,
    Crossover,
    crossover,
    disturbed_sentence,
    measured_sentences,
)
from visuals.charts.units import amount, milliseconds
from visuals.charts.what_if import counted_roofline
from visuals.live.hub import Hub
from visuals.pages.drawn import draw_chart
from visuals.pages.markdown import escaped
from visuals.pages.measure_controls import measure_controls
from visuals.pages.recorded import recorded_line
from visuals.pages.session import bound, change, session, value_of
from visuals.pages.widget_keys import CASE

CHART_HEIGHT = 330
ATTENTIONS: dict[str, Attention] = {"causal": "causal", "dense": "dense"}
CASES: dict[str, tuple[int, int, int]] = {  # sequences, tokens fed per sequence, context
    "Decode, 1 sequence": (1, 1, 512),
    "Prompt of 4": (1, 4, 4),
    "Prompt of 4,000": (1, 4000, 4000),
    "Decode, batch of 64": (64, 1, 512),
    "Batch of 64, long context": (64, 1, 8192),
}


def crossover_section(hub: Hub, ready: ModelReady | None) -> None:
    """Draw where a step of the loaded model turns from memory- to compute-bound.

    Until something of it was measured here, the recorded one of the default model is drawn.
    """
    status = hub.measure_status()
    ceilings = status.ceilings.ceilings if status.ceilings is not None else None
    has_own = ready is not None and (ceilings is not None or status.sweep is not None)
    recorded = None if has_own else recorded_measurements()
    model_id = ready.model_id if ready is not None else ""
    facts: Crossover | None = None
    if recorded is not None:
        model_id, facts = recorded.tokens.model_id, _facts(recorded)
    elif ready is not None:
        facts = Crossover(shape=ready.shape, ceilings=ceilings, sweep=status.sweep)
    left, right = st.columns([5, 7], gap="medium")
    with left:
        st.markdown(
            "A step over a few tokens takes as long as a step over one: "
            f"**{escaped(model_id.rpartition('/')[2]) or 'a model'}** reads all its weights either "
            "way. Beyond some number of tokens, computing takes longer than reading. Either phase, "
            "prefill or decode, can be on either side."
        )
        if ready is not None:
            measure_controls(
                hub, SweepTokens(counts=COUNTS), label="Measure the crossover", key="sweep"
            )
        if recorded is not None:
            recorded_line(
                "A recorded crossover",
                recorded.tokens.device,
                recorded.tokens.measured_at,
                recorded.tokens.model_id,
                "Press **Measure the crossover** for that of the loaded model on this machine.",
            )
        if facts is not None:
            _sentences(facts)
    with right:
        if facts is not None:
            draw_chart(
                crossover(facts).properties(height=CHART_HEIGHT),
                key="crossover",
            )
    if ready is not None and ceilings is not None:
        _move_it(ready, ceilings)


def _facts(recorded: Measurements) -> Crossover:
    return Crossover(
        shape=recorded.batches.shape,
        ceilings=recorded.ceilings.ceilings,
        sweep=recorded.tokens,
    )


def _sentences(facts: Crossover) -> None:
    """Say where the counted and the measured crossover lie, and why they differ."""
    counted, measured = facts.counted_tokens, facts.measured_tokens
    if counted is not None:
        st.markdown(
            f"**Counted: {counted:,} tokens.** Beyond this, computing takes longer."
            f"{_at_the_ridge(facts, counted)}"
        )
    elif facts.ceilings is not None:
        st.markdown("**Counted:** with these roofs, no step is compute-bound.")
    if facts.sweep is not None:
        for sentence in measured_sentences(facts.sweep):
            st.markdown(sentence)
        if disturbed := disturbed_sentence(facts.sweep.points):
            st.warning(disturbed)
    if counted is not None and measured is not None:
        st.caption(
            "The count assumes both roofs are reached. Where a step over few tokens stays below "
            "the memory roof, or a large one below the compute roof, the measured crossover "
            "shifts."
        )


def _at_the_ridge(facts: Crossover, tokens: int) -> str:
    """Say that the counted crossover is the roofline's ridge, in other words."""
    if facts.ceilings is None:
        return ""
    cost = step_cost(facts.shape, [(tokens, tokens)])
    ridge = amount(facts.ceilings.ridge_flops_per_byte, "FLOP/byte")
    return (
        f" Such a step does {amount(cost.flops_per_byte, 'FLOP/byte')}: this is the ridge of the "
        f"roofline, {ridge}, expressed in tokens."
    )


def _move_it(ready: ModelReady, ceilings: Ceilings) -> None:
    """Let the reader put a step on either side of the ridge."""
    st.markdown("##### Move the bottleneck yourself")
    st.pills("Try", list(CASES), key=CASE, on_change=_take_case, label_visibility="collapsed")
    left, right = st.columns([5, 7], gap="medium")
    with left:
        batch = _count("Sequences in the batch", "turn-batch", 1024)
        fed = _count("Tokens fed per sequence (T)", "turn-fed", 1 << 17)
        context = _count("Context per sequence, including those (L)", "turn-context", 1 << 20)
        context = max(context, fed)
        st.segmented_control(
            "Count attention as",
            list(ATTENTIONS),
            **bound("turn-attention"),
            required=True,
            help="causal: only what the mask allows, the least possible. dense: the whole "
            "rectangle, as eager attention multiplies it; other implementations skip what they "
            "can.",
        )
        attention = session().roofline.step_attention
        cost = step_cost(ready.shape, [(fed, context)] * batch, attention=ATTENTIONS[attention])
        side = bound_of(cost, ceilings)
        st.markdown(
            f"**{side.value}-bound**, counted: {amount(cost.flops_per_byte, 'FLOP/byte')} against "
            f"a ridge of {amount(ceilings.ridge_flops_per_byte, 'FLOP/byte')}; at least "
            f"{amount(milliseconds(lower_bound_seconds(cost, ceilings)), 'ms')}."
        )
        st.caption(
            "On the Live page, the examples with a short and a long prompt show the same effect."
        )
    with right:
        phase = Phase.DECODE if fed == 1 else Phase.PREFILL
        draw_chart(
            counted_roofline(ceilings, {phase.value: cost}, name="moved").properties(
                height=CHART_HEIGHT
            ),
            key="moved",
        )


def _count(label: str, key: str, most: int) -> int:
    return int(st.number_input(label, 1, most, **bound(key)))


def _take_case() -> None:
    case = value_of(CASE)
    if case is None:
        return
    batch, fed, context = CASES[case]
    change(**{"turn-batch": batch, "turn-fed": fed, "turn-context": context})
