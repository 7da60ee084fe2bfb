"""A chapter's question on the page: asked, checked, and explained."""

from __future__ import annotations

from functools import partial

import streamlit as st

from visuals.pages.markdown import escaped
from visuals.pages.page_states import TourPageState
from visuals.pages.session import value_of
from visuals.pages.widget_keys import TOUR_ANSWER
from visuals.tour.chapters import Chapter
from visuals.tour.questions import Question


def ask(state: TourPageState, chapter: Chapter, question: Question) -> bool:
    """Draw the question and the verdict on what was answered; tell whether that is right."""
    key = f"{TOUR_ANSWER}{chapter.slug}"
    said = state.answers.get(chapter.slug)
    with st.form(key=f"tour-form-{chapter.slug}", border=True):
        st.markdown(f"**Question.** {escaped(question.text)}")
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            _answer_widget(question, said, key)
            st.form_submit_button(
                "Check the answer",
                key=f"tour-check-{chapter.slug}",
                on_click=partial(_answer, state, chapter, question),
            )
        if said is None:
            return False
        is_right = question.is_right(said)
        box = st.success if is_right else st.info
        box(
            escaped(question.verdict(said)),
            icon=":material/check:" if is_right else ":material/lightbulb:",
        )
    return is_right


def _answer_widget(question: Question, said: str | None, key: str) -> None:
    """Draw what the answer is chosen with or typed into, as it was answered before."""
    if question.options:
        known = said if said in question.options else None
        st.radio(
            "Answer",
            question.options,
            index=None if known is None else question.options.index(known),
            key=key,
            horizontal=True,
            label_visibility="collapsed",
        )
    else:
        st.number_input(
            "Answer, a whole number",
            min_value=0,
            value=int(said) if said is not None and said.isdecimal() else None,
            step=1,
            key=key,
            width=220,
        )


def _answer(state: TourPageState, chapter: Chapter, question: Question) -> None:
    said = value_of(f"{TOUR_ANSWER}{chapter.slug}")
    if said is None:
        return
    state.answers[chapter.slug] = str(said)
    if question.is_right(str(said)):
        state.done.add(chapter.slug)
