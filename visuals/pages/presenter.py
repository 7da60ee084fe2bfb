"""Presenter mode as a page's address asks for it: ``?present=1``, ``&panels=mask,kv``."""

from __future__ import annotations

import streamlit as st

from visuals.live.presenting import MOST_PANELS, known_panels
from visuals.live.viewer_link import viewer_link
from visuals.pages.session import panel_state
from visuals.pages.visitor import server_keys
from visuals.panel.stage import Stage, presenter_stage
from visuals.words.presenter import IDEAS, TOO_MANY_PANELS, UNKNOWN_PANELS

PRESENT_PARAMETER, PANELS_PARAMETER = "present", "panels"


def stage_of_address(first_panel: str = "") -> Stage:
    """Return what the panel is given for the mode that the address asks for.

    Args:
        first_panel: Shown where the address names none, or where the mode is switched on by its
            key; empty for the usual one.
    """
    if st.query_params.get(PRESENT_PARAMETER) != "1":
        return presenter_stage(is_on=False, panels=known_panels([first_panel]))
    panels, sentence = panels_said(st.query_params.get(PANELS_PARAMETER, first_panel))
    link = viewer_link(st.context.url or "", *server_keys())
    return presenter_stage(is_on=True, panels=panels, sentence=sentence, link=link)


def with_note(stage: Stage, note: str) -> Stage:
    """Return a stage that says a note in place of each panel's idea; without one, as it is."""
    ideas = stage["ideas"]
    if not note or not isinstance(ideas, list):
        return stage
    said = [{**idea, "prefill": note, "decode": note} for idea in ideas]
    return {**stage, "ideas": said}


def say_in_address(key: str) -> None:
    """Have the address say what the panel with this key reports: presenter mode is on, or off."""
    if panel_state(key).get("presenting"):
        st.query_params[PRESENT_PARAMETER] = "1"
        return
    for name in (PRESENT_PARAMETER, PANELS_PARAMETER):
        st.query_params.pop(name, None)


def panels_said(text: str) -> tuple[tuple[str, ...], str]:
    """Return the panels that an address names, and what is wrong with them; empty for nothing."""
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    unknown = [name for name in names if name not in IDEAS]
    if unknown:
        said = ", ".join(name[:40] for name in unknown[:3])
        sentence = UNKNOWN_PANELS.format(names=said, all_names=", ".join(IDEAS))
    else:
        sentence = TOO_MANY_PANELS if len(set(names)) > MOST_PANELS else ""
    return known_panels(names), sentence
