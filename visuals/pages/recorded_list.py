"""The recorded runs that come with the program, on the Runs page, each with what it shows."""

from __future__ import annotations

import streamlit as st

from inference.records.run import RunTrace
from inference.runs.store_entries import entry_of
from visuals.charts.run_list import alike
from visuals.pages.page_states import RunsPageState
from visuals.pages.replays import SHIPPED, shipped_runs
from visuals.pages.run_rows import recorded_row
from visuals.words.teaching import NO_GPU, RANDOM, TEACHING, TITLE, TeachingRun

OWN = "They need no model: each plays again, can be exported, and is labelled as recorded."


def recorded_list(state: RunsPageState) -> None:
    """Draw the recorded runs in the order in which they teach."""
    shipped = shipped_runs()
    if not shipped:
        return
    st.markdown(f":material/history: **{TITLE}.** {OWN}")
    st.button(
        "Play them one after another",
        key="play-recorded",
        icon=":material/play_arrow:",
        on_click=_play_all,
        args=(state,),
        help="On the Playlists page, each with its sentence above it.",
    )
    with st.container(gap="small", key="shipped"):
        for shown in TEACHING:
            _rows(shown, shipped)
    if all(trace.info.device.kind == "cpu" for trace in shipped.values()):
        st.caption(NO_GPU)


def _rows(shown: TeachingRun, shipped: dict[str, RunTrace]) -> None:
    """Draw a recording: what it shows, and a row for each of its runs that differ."""
    key = f"{SHIPPED}{shown.name}"
    runs = {
        name: trace
        for name, trace in shipped.items()
        if name == key or name.removeprefix(f"{key}-").isdigit()
    }
    note = f" {RANDOM}" if shown.is_random else ""
    for number, group in enumerate(alike([entry_of(run, name, 0) for name, run in runs.items()])):
        is_first = number == 0
        recorded_row(group[0], shown.title, f"{shown.look_at}{note}" if is_first else "")


def _play_all(state: RunsPageState) -> None:
    state.wants_recorded = True
