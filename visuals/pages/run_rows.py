"""The rows of the list of kept runs: one run, or several that differ in their results only."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from inference.runs.store_entries import RunEntry
from visuals.charts.run_list import group_text, result_text, settings_text
from visuals.pages.markdown import escaped, quoted
from visuals.pages.session import tick
from visuals.pages.widget_keys import TICK

LONGEST_TITLE = 90


def run_row(group: Sequence[RunEntry]) -> None:
    """Draw one run, or several alike with one title over them."""
    first = group[0]
    if len(group) == 1:
        _row(first, (_title(first), *_facts(first)))
        return
    with st.container(gap="xsmall", key=f"group-{first.key}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(gap=None):
                st.text(_title(first))
                st.caption(escaped(group_text(group)))
                st.caption(escaped(settings_text(first)))
            st.button(
                f"Tick all {len(group)}",
                key=f"tick-{first.key}",
                icon=":material/done_all:",
                on_click=tick,
                args=([entry.key for entry in group],),
            )
        with st.expander(f"Show the {len(group)} runs"):
            for entry in group:
                _row(entry, ("", escaped(result_text(entry))))


def recorded_row(entry: RunEntry, title: str, look_at: str) -> None:
    """Draw a run that comes with the program: it can be opened, and neither ticked nor deleted.

    Args:
        entry: The run.
        title: What it shows, in a few words.
        look_at: The same in a sentence; empty where it stands above already.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"entry-{entry.key}"
    ):
        st.button(
            "Open",
            key=entry.key,
            icon=":material/history:",
            on_click=open_run,
            args=(entry.key,),
            help="Play the recorded run, and export it.",
        )
        with st.container(gap=None):
            st.markdown(f"**{title}**")
            if look_at:
                st.markdown(look_at)
            st.caption(f"Prompt: {quoted(_title(entry))}")
            for fact in _facts(entry):
                st.caption(fact)


def open_run(key: str) -> None:
    """Show the run with this key."""
    st.query_params["run"] = key


def _row(entry: RunEntry, lines: tuple[str, ...]) -> None:
    """Draw a tick, a button that plays the run, a title and lines of Markdown."""
    title, *facts = lines
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"entry-{entry.key}"
    ):
        st.checkbox(
            f"Tick run {escaped(entry.key)}",
            key=f"{TICK}{entry.key}",
            persist_state="session",
            label_visibility="collapsed",
        )
        st.button(
            "Open",
            key=f"open-{entry.key}",
            icon=":material/play_circle:",
            on_click=open_run,
            args=(entry.key,),
            disabled=bool(entry.problem),
            help="Play the run again, and export it.",
        )
        with st.container(gap=None):
            if title:
                st.text(title)
            for fact in facts:
                st.caption(fact)


def _title(entry: RunEntry) -> str:
    title = entry.title
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}\u2026"


def _facts(entry: RunEntry) -> tuple[str, ...]:
    if entry.problem:
        return (f":red[{escaped(entry.problem)}]",)
    return escaped(result_text(entry)), escaped(settings_text(entry))
