"""Kept runs of engines elsewhere on the Runs page: a list, and those ticked side by side."""

from __future__ import annotations

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.runs.remote_store import RemoteEntry, RemoteStore
from inference.runs.store import RunStore
from visuals.charts.endings import ending
from visuals.charts.side_by_side import prompts_of, side_by_side
from visuals.charts.units import amount, counted, date_text, milliseconds
from visuals.pages.drawn import draw_table
from visuals.pages.markdown import escaped, quoted
from visuals.pages.page_states import RunsPageState
from visuals.pages.session import is_ticked, session
from visuals.pages.widget_keys import TICK

MOST_LISTED = 50
MOST_COMPARED = 8
TITLE = "Runs of engines elsewhere"
HOW = "Tick two or more, of this machine above too, to see them side by side."


def endpoint_rows(store: RunStore, remote: RemoteStore, state: RunsPageState) -> None:
    """Draw the newest kept runs of engines elsewhere; nothing where there is none."""
    if state.remote_deleted:
        with st.container(horizontal=True, vertical_alignment="center", key="endpoint-undo-line"):
            st.markdown(f"{counted(len(state.remote_deleted), 'run')} deleted.")
            st.button(
                "Undo",
                key="endpoint-undo",
                icon=":material/undo:",
                on_click=_undo,
                args=(remote, state),
            )
    entries = remote.entries(MOST_LISTED)
    if not entries:
        return
    st.markdown(f":material/dns: **{TITLE}.** {HOW}")
    ticked = [entry.key for entry in entries if is_ticked(entry.key)]
    if ticked:
        _compared(store, remote, ticked)
    with st.container(gap="small", key="endpoint-rows"):
        for entry in entries:
            _row(entry, remote, state)


def _compared(store: RunStore, remote: RemoteStore, keys: list[str]) -> None:
    """Draw what is ticked side by side, where it is more than one run."""
    local_keys = [entry.key for entry in store.entries() if is_ticked(entry.key)]
    try:
        there = [remote.open(key) for key in keys[:MOST_COMPARED]]
        here = [store.open(key) for key in local_keys[:MOST_COMPARED]]
    except TokenByTokenError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if len(there) + len(here) == 1:
        return
    draw_table(side_by_side(there, here), caption="The ticked runs side by side", is_wide=True)
    prompts = prompts_of(there, here)
    if len(prompts) > 1:
        st.warning(
            f"These runs have {len(prompts)} different prompts, so their figures are of different "
            "work.",
            icon=":material/warning:",
        )


def _row(entry: RemoteEntry, remote: RemoteStore, state: RunsPageState) -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"entry-{entry.key}"
    ):
        st.checkbox(
            f"Tick run {escaped(entry.key)}",
            key=f"{TICK}{entry.key}",
            persist_state="session",
            label_visibility="collapsed",
            disabled=bool(entry.problem),
        )
        st.button(
            "Open",
            key=f"open-{entry.key}",
            icon=":material/dns:",
            on_click=_open,
            args=(entry.key, state),
            disabled=bool(entry.problem),
            help="Show it on the Live page, and save it.",
        )
        with st.container(gap=None):
            st.markdown(quoted(entry.prompt or entry.key))
            st.caption(_facts(entry))
        st.button(
            "Delete",
            key=f"delete-{entry.key}",
            icon=":material/delete:",
            on_click=_delete,
            args=(entry.key, remote, state),
        )


def _facts(entry: RemoteEntry) -> str:
    if entry.problem:
        return f":red[{escaped(entry.problem)}]"
    tokens = "tokens not known" if entry.tokens is None else counted(entry.tokens, "token")
    parts = [
        f"{date_text(entry.started_at)}, {entry.started_at:%H:%M} UTC",
        ending(entry.state.value),
        counted(entry.requests, "request") if entry.is_load or entry.requests > 1 else "",
        tokens,
        f"TTFT {amount(milliseconds(entry.ttft_s), 'ms')}" if entry.ttft_s is not None else "",
        entry.engine,
        entry.model_id,
        entry.address,
    ]
    return " \u00b7 ".join(escaped(part) for part in parts if part)


def _open(key: str, state: RunsPageState) -> None:
    session().live_page.run_id = key
    state.wants_live = True


def _delete(key: str, remote: RemoteStore, state: RunsPageState) -> None:
    state.sentence = ""
    try:
        remote.delete([key])
    except TokenByTokenError as error:
        state.sentence = str(error)
    else:
        state.remote_deleted = (*state.remote_deleted, key)


def _undo(remote: RemoteStore, state: RunsPageState) -> None:
    state.sentence = ""
    try:
        remote.restore(state.remote_deleted)
    except TokenByTokenError as error:
        state.sentence = str(error)
    else:
        state.remote_deleted = ()
