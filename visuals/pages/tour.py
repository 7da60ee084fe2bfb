"""The Tour: seven short chapters on the reader's own prompt, each with a run, a try and a question.

A thin script: it never loops or sleeps. What it says is in ``visuals/tour/texts.py``, which run it
shows in ``tour_runs.py``.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.runs.recordings import recorded_measurements
from visuals.charts.batching import batch_rates
from visuals.charts.context_costs import context_costs
from visuals.charts.theme import Chart, Row
from visuals.charts.units import DASH
from visuals.live.hub import Hub
from visuals.pages.drawn import draw_chart, draw_table
from visuals.pages.markdown import escaped, shortened
from visuals.pages.measure_controls import engine_activity, watch_engine
from visuals.pages.page_states import TourPageState
from visuals.pages.panels import run_panel
from visuals.pages.recorded import recorded_line
from visuals.pages.session import bound, enter_page, field_of
from visuals.pages.tour_question import ask
from visuals.pages.tour_runs import ShownRun, forget, run_shown
from visuals.pages.widget_keys import TOUR_PANEL
from visuals.tour.chapters import CHAPTERS, Chapter, Slug, Variant, chapter_at, variant_of
from visuals.tour.facts import (
    RunFacts,
    batch_facts,
    context_facts,
    recorded_batch_facts,
    recorded_context_facts,
)
from visuals.tour.readings import reading
from visuals.tour.texts import (
    FINISHED,
    IN_PROGRESS,
    NO_NUMBERS,
    NOTHING_TO_TRY,
    TEXTS,
    UNKNOWN,
    WELCOME,
    Changed,
)

CHART_HEIGHTS = {Slug.BATCHING: 330, Slug.CONTEXT: 230}
LONGEST_PROMPT = 1000
STEP, DONE = "step", "done"  # in the address


def tour_page(hub: Hub) -> None:
    """Draw the page."""
    state = enter_page("tour").tour_page
    chapter, unknown = _chapter(state)
    drawn = engine_activity(hub)
    number = CHAPTERS.index(chapter)
    with st.container(key="tour-notes"):  # so that nothing below is built anew with what it says
        if not number:
            st.markdown(WELCOME)
        if unknown:
            sentence = UNKNOWN.format(name=escaped(shortened(unknown)))
            st.warning(sentence, icon=":material/link_off:")
    _head(number)
    _body(hub, state, chapter)
    _all_chapters(state, chapter)
    watch_engine(hub, drawn)


def _chapter(state: TourPageState) -> tuple[Chapter, str]:
    """Return the chapter that the address names, and the name where there is none such."""
    asked = st.query_params.get(STEP)
    done = st.query_params.get(DONE, "").split(",")
    state.done.update(slug for slug in done if chapter_at(slug) is not None)
    named = chapter_at(state.slug if asked is None else asked)
    chapter = named or CHAPTERS[0]
    state.slug = chapter.slug
    if named is not None:
        st.query_params[STEP] = chapter.slug
    if state.done:
        st.query_params[DONE] = ",".join(one.slug for one in CHAPTERS if one.slug in state.done)
    return chapter, "" if named is not None else str(asked)


def _head(number: int) -> None:
    """Draw the chapter's title, and the ways to the chapters beside it."""
    title = TEXTS[CHAPTERS[number].slug].title
    with st.container(
        horizontal=True,
        horizontal_alignment="distribute",
        vertical_alignment="center",
        gap="small",
        key="tour-head",
    ):
        st.subheader(f"{number + 1} of {len(CHAPTERS)}: {title}", anchor=False, width="content")
        with st.container(horizontal=True, gap="xsmall", width="content"):
            _way("Back", number - 1, key="tour-back", icon=":material/arrow_back:", shortcut="B")
            _way("Next", number + 1, key="tour-next", icon=":material/arrow_forward:", shortcut="N")


def _way(label: str, number: int, *, key: str, icon: str, shortcut: str | None = None) -> None:
    is_there = 0 <= number < len(CHAPTERS)
    st.button(
        label,
        key=key,
        icon=icon,
        disabled=not is_there,
        on_click=_go,
        args=(CHAPTERS[number].slug if is_there else "",),
        shortcut=shortcut,
    )


def _go(slug: str) -> None:
    st.query_params[STEP] = slug


def _body(hub: Hub, state: TourPageState, chapter: Chapter) -> None:
    left, right = st.columns([5, 8], gap="medium")
    with left:
        words = st.container(key="tour-words")
        prompt, variant = _controls(hub, chapter)
    shown = run_shown(hub, state, chapter, variant, prompt)
    with left:
        key = (chapter.slug, variant.name, prompt)
        st.button(
            "Run again" if shown.recorded is None else "Play again",
            key="tour-again",
            icon=":material/replay:",
            on_click=forget,
            args=(state, key),
        )
        if state.sentence:
            st.error(escaped(state.sentence), icon=":material/error:")
    with words:
        _words(chapter, shown)
    with right:
        _picture(hub, state, chapter, shown, prompt)
    _below(state, chapter, variant, shown)


def _controls(hub: Hub, chapter: Chapter) -> tuple[str, Variant]:
    """Draw the reader's prompt and what can be tried; return both."""
    text = TEXTS[chapter.slug]
    can_try = hub.engine_status().ready is not None
    st.text_area("Your prompt", **bound("tour-prompt"), max_chars=LONGEST_PROMPT, height="content")
    names = [variant.name for variant in chapter.variants]
    key = f"tour-try-{chapter.slug}"
    st.pills(
        f"Try it. {text.try_label}:",
        names,
        **bound(key, names),
        required=True,
        disabled=not can_try,
    )
    if not can_try:
        st.caption(NOTHING_TO_TRY)
    return field_of("tour-prompt"), variant_of(chapter, field_of(key))


def _words(chapter: Chapter, shown: ShownRun) -> None:
    """Say the idea, and its figures in this run."""
    text = TEXTS[chapter.slug]
    st.markdown(text.idea)
    if shown.facts is not None:
        st.markdown(text.figures(shown.facts))
    elif shown.run is not None:
        st.caption(NO_NUMBERS if shown.run.state.is_final else IN_PROGRESS)


def _picture(
    hub: Hub, state: TourPageState, chapter: Chapter, shown: ShownRun, prompt: str
) -> None:
    with st.container(key="tour-source"):
        if shown.recorded is not None:
            info = shown.recorded.info
            recorded_line("A recorded run", info.device, info.started_at, info.model_id, shown.why)
        elif shown.run is None:
            st.info(shown.why)
    if shown.run is None:
        return
    label = "recorded run" if shown.recorded is not None else ""
    run_panel(
        hub,
        shown.run,
        key=f"{TOUR_PANEL}{chapter.slug}",
        label=label,
        state=shown.run.state,
        panels=chapter.panels,
    )
    chart = _chart(chapter, _made(state, chapter, prompt), is_recorded=shown.recorded is not None)
    if chart is not None:
        draw_chart(chart.properties(height=CHART_HEIGHTS[chapter.slug]), key=f"tour-{chapter.slug}")
    if shown.facts is not None and (words := reading(chapter.slug, shown.facts)):
        with st.container(key="tour-reading"):
            st.markdown(words)


def _made(state: TourPageState, chapter: Chapter, prompt: str) -> list[RunFacts]:
    """Return the chapter's runs of this prompt, in the order in which they were made."""
    return [
        facts
        for (slug, _name, of_prompt), facts in state.facts.items()
        if slug == chapter.slug and of_prompt == prompt
    ]


def _chart(chapter: Chapter, made: list[RunFacts], *, is_recorded: bool) -> Chart | None:
    """Return what the chapter's runs show together, or the recorded sweep; None for nothing."""
    measured = recorded_measurements() if is_recorded else None
    if chapter.slug is Slug.BATCHING:
        if measured is not None:
            return batch_rates(recorded_batch_facts(measured))
        return batch_rates(batch_facts(made)) if made else None
    if chapter.slug is Slug.CONTEXT:
        if measured is not None:
            return context_costs(recorded_context_facts(measured))
        costs = context_facts(made) if made else None
        return None if costs is None else context_costs(costs)
    return None


def _below(state: TourPageState, chapter: Chapter, variant: Variant, shown: ShownRun) -> None:
    """Show what a change has changed, and the question."""
    facts = shown.facts
    if facts is None:
        return
    text = TEXTS[chapter.slug]
    before = state.before.get(chapter.slug) if shown.recorded is None else None
    left, right = st.columns([5, 8], gap="medium")
    with left:
        if before is not None:
            names = f"{before[0]} \u2192 {variant.name}"
            _change(names, text.changed(before[1]), text.changed(facts))
    with right:
        is_right = ask(state, chapter, text.question(facts))
        number = CHAPTERS.index(chapter) + 1
        if is_right and number < len(CHAPTERS):
            following = TEXTS[CHAPTERS[number].slug].title
            _way(f"Next: {following}", number, key="tour-on", icon=":material/arrow_forward:")
    if len(state.done) == len(CHAPTERS):
        st.success(FINISHED, icon=":material/flag:")


def _change(names: str, former: Changed, present: Changed) -> None:
    st.markdown(f"**What changed:** {escaped(names)}")
    rows: list[Row] = [
        {"": figure, "before": former.get(figure, DASH), "now": value}
        for figure, value in present.items()
    ]
    draw_table(
        rows,
        caption="Figures of the run before and of this one",
    )


def _all_chapters(state: TourPageState, chapter: Chapter) -> None:
    """Draw a button for each chapter, ticked where its question was answered right."""
    st.caption(f"{len(state.done)} of {len(CHAPTERS)} questions answered")
    with st.container(horizontal=True, gap="xsmall", key="tour-chapters"):
        for number, other in enumerate(CHAPTERS, start=1):
            st.button(
                f"{number} {TEXTS[other.slug].title}",
                key=f"tour-go-{other.slug}",
                icon=":material/check:" if other.slug in state.done else None,
                type="primary" if other is chapter else "tertiary",
                on_click=partial(_go, other.slug),
            )
