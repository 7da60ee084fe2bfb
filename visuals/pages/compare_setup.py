"""What to compare: uploaded and pasted prompts with a preview, or one prompt's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from inference.process.orders import RunOrder
from inference.records.errors import TokenByTokenError
from inference.records.options import AttentionKind, CacheKind, DecodeMode, Sampling
from visuals.charts.units import counted
from visuals.live.comparison_plan import (
    MAX_REPEATS,
    Choices,
    PlanSettings,
    planned_runs,
    prompt_orders,
    setting_orders,
)
from visuals.live.groups import PlannedRun
from visuals.live.hub import Hub
from visuals.pages.compare_prompts import chosen_prompts, prompt_sources
from visuals.pages.composer import DTYPES, attention_kinds, run_settings
from visuals.pages.inputs import (
    ALONE,
    AT_ONCE,
    CHUNKS,
    GREEDY,
    ROWS,
    TEMPERATURES,
    CompareInputs,
    CompareKind,
    RunSequence,
    Together,
)
from visuals.pages.markdown import escaped
from visuals.pages.model_choice import model_label, model_names
from visuals.pages.run_settings import AUTO
from visuals.pages.session import bound, session


def setup(hub: Hub, start: Callable[[], None]) -> None:
    """Draw what is compared, how many runs that makes, and the button that starts them."""
    st.segmented_control(
        "Compare",
        list(CompareKind),
        **bound("compare-kind"),
        required=True,
        label_visibility="collapsed",
    )
    has_prompts = session().compare.kind is CompareKind.PROMPTS
    if has_prompts:
        prompt_sources(hub)
    else:
        _one_prompt(hub)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="how"):
        _how(hub, has_prompts=has_prompts)
        planned, problem = _planned()
        st.button(
            "Compare",
            key="start-comparison",
            type="primary",
            icon=":material/play_arrow:",
            disabled=not planned and not problem,
            on_click=start,
            help="Make the runs and show them side by side.",
        )
    compared = sum(not run.is_warm_up for run in planned)
    count = f"This makes {counted(compared, 'run')}{_warm_ups(len(planned) - compared)}."
    st.caption(escaped(problem) if problem else count)


def _planned() -> tuple[tuple[PlannedRun, ...], str]:
    """Return the runs asked for, or none and why they cannot be made."""
    try:
        return planned_from_widgets(), ""
    except TokenByTokenError as error:
        return (), str(error)


def planned_from_widgets() -> tuple[PlannedRun, ...]:
    """Return the runs that the widgets ask for.

    Raises:
        PromptError, InputError: They cannot be run.
    """
    ours = session()
    asked = ours.compare
    base = replace(ours.run.order(), split_every=None, is_captured=False)  # both cost time
    settings = PlanSettings(
        repeats=asked.repeats,
        is_shuffled=asked.sequence is RunSequence.SHUFFLED,
        is_batch=asked.together is Together.BATCH and asked.kind is CompareKind.PROMPTS,
        is_warmed=asked.is_warmed,
        seed=base.seed,
    )
    return planned_runs(_orders(base, asked), settings)


def _orders(base: RunOrder, asked: CompareInputs) -> tuple[RunOrder, ...]:
    if asked.kind is CompareKind.PROMPTS:
        return prompt_orders(base, chosen_prompts())
    return setting_orders(base, _choices(base, asked))


def _warm_ups(count: int) -> str:
    return f" and {counted(count, 'warm-up')}, not compared" if count else ""


def _one_prompt(hub: Hub) -> None:
    """Draw one prompt and the settings it is run under."""
    st.text_area("Prompt", **bound("prompt"), height=110)
    with st.container(horizontal=True, gap="small"):
        st.multiselect("Number formats", DTYPES, **bound("vary-dtypes"), width=220)
        attentions = [kind.value for kind in attention_kinds(hub)]
        st.multiselect("Attention", attentions, **bound("vary-attentions", attentions), width=290)
        st.multiselect("Prefill", list(CHUNKS), **bound("vary-chunks"), width=220)
        kinds, modes = [kind.value for kind in CacheKind], [mode.value for mode in DecodeMode]
        st.multiselect("K/V cache", kinds, **bound("vary-caches"), width=220)
        st.multiselect("Decode steps", modes, **bound("vary-decodes"), width=220)
        st.multiselect(
            "Batch",
            list(ROWS),
            **bound("vary-rows"),
            width=220,
            help="Alone, or as one batch of this many copies of the prompt: the weights are read "
            "once per step for all of them.",
        )
        st.multiselect("Decoding", list(TEMPERATURES), **bound("vary-choice"), width=220)
        st.multiselect(
            "Models",
            model_names(),
            **bound("vary-models"),
            format_func=model_label,
            accept_new_options=True,
            width=260,
        )


def _choices(base: RunOrder, asked: CompareInputs) -> Choices:
    """Return what is varied; of a setting with nothing chosen, its default."""
    temperatures = [TEMPERATURES[name] for name in asked.temperatures or (GREEDY,)]
    return Choices(
        models=asked.models or (base.load.model,),
        dtypes=asked.dtypes or (base.load.dtype,),
        attentions=tuple(AttentionKind(name) for name in asked.attentions or (AUTO,)),
        rows=tuple(ROWS[name] for name in asked.rows or (ALONE,)),
        samplings=tuple(Sampling(temperature=temperature) for temperature in temperatures),
        caches=tuple(CacheKind(name) for name in asked.caches or (CacheKind.DYNAMIC,)),
        chunks=tuple(CHUNKS[name] for name in asked.chunks or (AT_ONCE,)),
        decodes=tuple(DecodeMode(name) for name in asked.decodes or (DecodeMode.EAGER,)),
    )


def _how(hub: Hub, *, has_prompts: bool) -> None:
    """Draw how the runs are made."""
    if has_prompts:
        st.selectbox(
            "Run them",
            list(Together),
            **bound("together"),
            width=190,
            help="One after another: no run disturbs another. As one batch: the weights are "
            "read once per step for all of them.",
        )
    st.number_input(
        "Repeats",
        1,
        MAX_REPEATS,
        **bound("repeats"),
        width=120,
        help="With two or more, the spread shows which differences mean something.",
    )
    st.selectbox("Order", list(RunSequence), **bound("run-order"), width=190)
    st.toggle(
        "Warm up first",
        **bound("warm-up"),
        help="A short run, not compared, absorbs the cost of the first calls.",
    )
    with st.popover("Settings", icon=":material/tune:", key="settings"):
        run_settings(hub)
