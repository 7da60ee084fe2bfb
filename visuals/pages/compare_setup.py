"""What to compare: uploaded and pasted prompts with a preview, or one prompt's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from inference.models.catalog import CATALOG
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
from visuals.pages.composer import DTYPES, attention_kinds, current_order, run_settings
from visuals.pages.examples import example_prompts

PROMPTS, SETTINGS = "Several prompts", "One prompt, several settings"
ALONE, BATCH = "one after another", "as one batch"
LISTED, SHUFFLED = "as listed", "shuffled each round"
CHUNKS: dict[str, int | None] = {"at once": None, "32 a step": 32, "128 a step": 128}
ROWS: dict[str, int] = {"alone": 1, **{f"batch of {count}": count for count in (2, 4, 8, 16)}}
TEMPERATURES: dict[str, float] = {"greedy": 0.0, "temperature 0.7": 0.7, "temperature 1": 1.0}


def setup(hub: Hub, start: Callable[[], None]) -> None:
    """Draw everything that says what is compared, how many runs that makes, and the start."""
    kind = st.segmented_control(
        "Compare",
        [PROMPTS, SETTINGS],
        default=PROMPTS,
        key="compare-kind",
        required=True,
        label_visibility="collapsed",
    )
    if kind == PROMPTS:
        prompt_sources(hub)
    else:
        _one_prompt(hub)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="how"):
        _how(hub, has_prompts=kind == PROMPTS)
        st.button(
            "Compare",
            key="start-comparison",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start,
            help="Make the runs and show them side by side.",
        )
    try:
        planned = planned_from_widgets()
    except TokenByTokenError as error:
        st.caption(str(error))
        return
    compared = sum(not one.is_warm_up for one in planned)
    st.caption(f"This makes {counted(compared, 'run')}{_warm_ups(len(planned) - compared)}.")


def planned_from_widgets() -> tuple[PlannedRun, ...]:
    """Return the runs that the widgets ask for.

    Raises:
        PromptError, InputError: They cannot be run.
    """
    state = st.session_state
    order = current_order(is_paused=False, steps_per_s=None)
    base = replace(order, split_every=None, is_captured=False, capture=None)  # looking costs time
    settings = PlanSettings(
        repeats=int(state.get("repeats", 1)),
        is_shuffled=state.get("run-order", LISTED) == SHUFFLED,
        is_batch=state.get("together", ALONE) == BATCH and state.get("compare-kind") == PROMPTS,
        is_warmed=bool(state.get("warm-up", True)),
        seed=base.seed,
    )
    return planned_runs(_orders(base), settings)


def _orders(base: RunOrder) -> tuple[RunOrder, ...]:
    state = st.session_state
    if state.get("compare-kind", PROMPTS) == PROMPTS:
        return prompt_orders(base, chosen_prompts())
    return setting_orders(base, _choices(base))


def _warm_ups(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f" and {counted(count, 'warm-up')} that {verb} not compared" if count else ""


def _one_prompt(hub: Hub) -> None:
    """Draw one prompt and the settings it is run under."""
    st.session_state.setdefault("prompt", example_prompts()[1].prompt)
    st.text_area("Prompt", key="prompt", height=110)
    with st.container(horizontal=True, gap="small"):
        st.multiselect("Number formats", DTYPES, default=["auto"], key="vary-dtypes", width=220)
        st.multiselect(
            "Attention",
            [one.value for one in attention_kinds(hub)],
            default=[AttentionKind.AUTO.value],
            key="vary-attentions",
            width=290,
        )
        st.multiselect(
            "Prompt is fed", list(CHUNKS), default=["at once"], key="vary-chunks", width=220
        )
        kinds, modes = [one.value for one in CacheKind], [one.value for one in DecodeMode]
        st.multiselect("Cache", kinds, default=kinds[:1], key="vary-caches", width=220)
        st.multiselect("Decode steps", modes, default=modes[:1], key="vary-decodes", width=220)
        st.multiselect(
            "Batch",
            list(ROWS),
            default=["alone"],
            key="vary-rows",
            width=220,
            help="Alone, or as one batch of so many copies of the prompt: the weights are read "
            "once a step for all of them.",
        )
        st.multiselect(
            "Next token", list(TEMPERATURES), default=["greedy"], key="vary-choice", width=220
        )
        st.multiselect(
            "Models",
            ["default", *(entry.id for entry in CATALOG)],
            default=["default"],
            key="vary-models",
            accept_new_options=True,
            width=260,
        )


def _choices(base: RunOrder) -> Choices:
    state = st.session_state
    drawn = [TEMPERATURES[name] for name in state.get("vary-choice") or ["greedy"]]
    return Choices(
        models=tuple(state.get("vary-models") or (base.load.model,)),
        dtypes=tuple(state.get("vary-dtypes") or (base.load.dtype,)),
        attentions=tuple(AttentionKind(name) for name in state.get("vary-attentions") or ("auto",)),
        rows=tuple(ROWS[name] for name in state.get("vary-rows") or ("alone",)),
        samplings=tuple(Sampling(temperature=one) for one in drawn),
        caches=tuple(CacheKind(name) for name in state.get("vary-caches") or ("dynamic",)),
        chunks=tuple(CHUNKS[name] for name in state.get("vary-chunks") or ("at once",)),
        decodes=tuple(DecodeMode(name) for name in state.get("vary-decodes") or ("eager",)),
    )


def _how(hub: Hub, *, has_prompts: bool) -> None:
    """Draw how the runs are made."""
    if has_prompts:
        st.selectbox(
            "Run them",
            [ALONE, BATCH],
            key="together",
            width=190,
            help="One after another, no run disturbs another. As one batch, the weights are "
            "read once a step for all of them.",
        )
    st.number_input(
        "Repeats",
        1,
        MAX_REPEATS,
        1,
        key="repeats",
        width=120,
        help="With two and more, the spread shows which differences mean something.",
    )
    st.selectbox("Order", [LISTED, SHUFFLED], key="run-order", width=190)
    st.toggle(
        "Warm up first",
        value=True,
        key="warm-up",
        help="A short run that is not compared takes the costs of the first calls.",
    )
    with st.popover("Settings", icon=":material/tune:", key="settings"):
        run_settings(hub)
