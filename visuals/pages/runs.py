"""The Runs page: every run kept on disk, to search, name, replay, compare and delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.runs.remote_store import RemoteStore
from inference.runs.run_file import read_bytes
from inference.runs.store import RunStore
from inference.runs.store_room import ROOM_VARIABLE
from visuals.charts.run_list import alike, matching
from visuals.charts.units import byte_text, counted
from visuals.live.hub import Hub
from visuals.pages.endpoint_rows import endpoint_rows
from visuals.pages.markdown import escaped
from visuals.pages.page_states import SHOWN, RunsPageState
from visuals.pages.recorded_list import recorded_list
from visuals.pages.replays import replay_view
from visuals.pages.run_rows import run_row
from visuals.pages.session import bound, change, enter_page, is_ticked, value_of
from visuals.pages.widget_keys import IMPORT

MAX_COMPARED = 32
WHAT_A_ROW_SAYS = (
    "Each run with its prompt and output tokens, its time to first token (TTFT), its tokens per "
    "second during decode, and what it was made with."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysOut:
    """Where the page can take the browser.

    Attributes:
        compare: To the Compare page with these runs.
        live: To the Live page.
        recorded: To the playlist of the recorded runs.
    """

    compare: Callable[[Sequence[str]], None]
    live: Callable[[], None]
    recorded: Callable[[], None]


def runs_page(
    hub: Hub, store: RunStore, remote: RemoteStore, ways: WaysOut, problem: str = ""
) -> None:
    """Draw the page.

    Args:
        hub: Plays runs again.
        store: Keeps them.
        remote: Keeps those of engines elsewhere.
        ways: Where the browser can be taken from here.
        problem: Why runs cannot be kept at the moment; empty when they can.
    """
    state = enter_page("runs").runs_page
    if state.wants_compared:
        wanted, state.wants_compared = state.wants_compared, ()
        ways.compare(wanted)
    if state.wants_live:
        state.wants_live = False
        ways.live()
    if state.wants_recorded:
        state.wants_recorded = False
        ways.recorded()
    if problem:
        st.warning(escaped(problem), icon=":material/warning:")
    if "run" in st.query_params:
        replay_view(hub, store, st.query_params["run"])
        return
    _list(store, state)
    endpoint_rows(store, remote, state)
    recorded_list(state)


def _list(store: RunStore, state: RunsPageState) -> None:
    entries = store.entries()
    with st.container(horizontal=True, vertical_alignment="bottom", key="runs-head"):
        words = st.text_input(
            "Search",
            **bound("search"),
            placeholder="Search prompts, answers, names, models, settings, dates …",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        _import(store, state)
    st.caption(WHAT_A_ROW_SAYS)
    matches = matching(entries, words)
    _sentences(store, state)
    _room_sentences(store, state)
    if not entries:
        st.info(
            "No run is kept yet. Every run you make on the **Live** page appears here, and run "
            f"files can be opened above. Folder: {escaped(str(store.folder))}"
        )
        return
    picked = [entry.key for entry in matches if is_ticked(entry.key)]
    _actions(store, state, picked, f"{counted(len(matches), 'run')} of {len(entries):,}")
    if not matches:
        _nothing_found(words)
    groups = alike(matches)
    for group in groups[: state.shown]:
        run_row(group)
    if len(groups) > state.shown:
        st.button("Show more", key="more", on_click=_more, args=(state,))
    st.caption(_kept(store))


def _kept(store: RunStore) -> str:
    """Return where runs are kept, how much room they take, and what made room."""
    room = store.room()
    words = f"Kept in {escaped(str(store.folder))}, one file per run: {byte_text(room.used_bytes)}"
    if room.most_bytes is None:
        return f"{words}."
    words += f" of {byte_text(room.most_bytes)}. Where more is needed, deleted runs go first, then "
    words += "the oldest without a name."
    if room.removed:
        words += f" Since the server was started: {counted(room.removed, 'run')}."
    return words


def _room_sentences(store: RunStore, state: RunsPageState) -> None:
    """Say that runs are gone, once, and that no more can go."""
    room = store.room()
    if room.removed > state.removed_seen:
        count = room.removed - state.removed_seen
        were = "was" if count == 1 else "were"
        st.info(
            f"To make room, {counted(count, 'run')} without a name {were} removed, the oldest "
            "first. Give a run a name to keep it.",
            icon=":material/delete_sweep:",
        )
        state.removed_seen = room.removed
    if room.excess_bytes:
        st.warning(
            f"Kept runs take {byte_text(room.used_bytes)} and may take "
            f"{byte_text(room.most_bytes or 0)}. Runs with a name stay: delete some, or set "
            f"{escaped(ROOM_VARIABLE)} higher.",
            icon=":material/warning:",
        )


def _nothing_found(words: str) -> None:
    st.info(
        f"No run has all of these words: {escaped(words)}. Prompts, answers, names, models, dates "
        "such as 30 November 2026, and every setting shown in the list are searched.",
        icon=":material/search_off:",
    )
    st.button("Show all runs", key="clear-search", on_click=partial(change, search=""))


def _actions(store: RunStore, state: RunsPageState, picked: list[str], count: str) -> None:
    """Draw what can be done with the runs that are ticked."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="runs-actions"
    ):
        st.button(
            f"Compare {len(picked)}" if picked else "Compare",
            key="compare-picked",
            icon=":material/compare_arrows:",
            disabled=not picked or len(picked) > MAX_COMPARED,
            on_click=_compare,
            args=(state, picked),
            help="Show the ticked runs side by side.",
        )
        st.button(
            f"Delete {len(picked)}" if picked else "Delete",
            key="delete-picked",
            icon=":material/delete:",
            disabled=not picked,
            on_click=_delete,
            args=(store, state, picked),
            help="Remove the ticked runs from the list; Undo brings them back.",
        )
        st.caption(count)


def _sentences(store: RunStore, state: RunsPageState) -> None:
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    for note in state.notes:
        st.success(escaped(note))
    state.notes = []
    if state.deleted:
        with st.container(horizontal=True, vertical_alignment="center", key="undo-line"):
            st.markdown(f"{counted(len(state.deleted), 'run')} deleted.")
            st.button(
                "Undo", key="undo", icon=":material/undo:", on_click=_undo, args=(store, state)
            )


def _import(store: RunStore, state: RunsPageState) -> None:
    with st.popover("Open run files", icon=":material/upload_file:", key="import"):
        key = f"{IMPORT}{state.uploads}"
        st.file_uploader(
            "Run files",
            type=["json", "gz"],
            accept_multiple_files=True,
            key=key,
            on_change=_take_files,
            args=(store, state, key),
            help="Files saved here, on another machine, or by the command line.",
        )


def _take_files(store: RunStore, state: RunsPageState, key: str) -> None:
    problems: list[str] = []
    for upload in value_of(key) or ():
        try:
            traces = read_bytes(upload.getvalue())
            for trace in traces:
                store.save(trace)
            state.notes.append(f"{upload.name}: {counted(len(traces), 'run')} kept.")
        except TokenByTokenError as error:
            problems.append(f"{upload.name}: {error}")
    state.sentence = " ".join(problems)
    state.uploads += 1


def _more(state: RunsPageState) -> None:
    state.shown += SHOWN


def _compare(state: RunsPageState, keys: Sequence[str]) -> None:
    state.wants_compared = tuple(keys)


def _delete(store: RunStore, state: RunsPageState, keys: Sequence[str]) -> None:
    _try(state, lambda: store.delete(keys))
    state.deleted = () if state.sentence else tuple(keys)


def _undo(store: RunStore, state: RunsPageState) -> None:
    keys, state.deleted = state.deleted, ()
    _try(state, lambda: store.restore(keys))


def _try(state: RunsPageState, act: Callable[[], None]) -> None:
    """Do something to the store, or keep the sentence why it could not be done."""
    state.sentence = ""
    try:
        act()
    except TokenByTokenError as error:
        state.sentence = str(error)
