"""The Compare page: prompts or settings side by side, made here one after another or as one batch.

A thin script: it never loops or sleeps. The runs belong to the hub, the group goes on by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.store import RunStore
from visuals.charts.units import counted
from visuals.live.groups import Groups, RunGroup
from visuals.live.hub import Hub
from visuals.pages.compare_results import show_results
from visuals.pages.compare_setup import planned_from_widgets, setup
from visuals.pages.markdown import plain
from visuals.pages.panels import run_panel
from visuals.pages.transport_buttons import stop_button

POLL_S = 1.0
MAX_SHOWN = 160


@dataclass(slots=True)
class ComparePageState:
    """What this browser tab compares.

    Attributes:
        group_id: The comparison that goes or went last; None before the first.
        run_ids: The runs whose results are shown.
        traces: Those runs.
        missing: Runs of the address that are not kept.
        sentence: What went wrong with the last press; empty when nothing did.
    """

    group_id: str | None = None
    run_ids: tuple[str, ...] = ()
    traces: tuple[RunTrace, ...] = ()
    missing: tuple[str, ...] = field(default=())
    sentence: str = ""


def compare_page(hub: Hub, groups: Groups, store: RunStore) -> None:
    """Draw the page."""
    state = _state()
    group = groups.find(state.group_id) if state.group_id else None
    is_going = group is not None and not group.is_over
    if is_going and group is not None:
        _going(hub, groups, group)
        return
    if group is not None and group.compared_ids != state.run_ids:
        _capture(hub, store, state, group.compared_ids)
    _take_address(hub, store, state)
    with st.expander(
        "Choose what to compare", expanded=not state.traces, icon=":material/tune:", key="setup"
    ):
        setup(hub, lambda: _start(groups, state))
    _sentences(state, group)
    if state.traces:
        show_results(state.traces)


def _state() -> ComparePageState:
    if "compare" not in st.session_state:
        group_id = st.query_params.get("group")
        st.session_state["compare"] = ComparePageState(group_id=group_id)
    return st.session_state["compare"]


def _sentences(state: ComparePageState, group: RunGroup | None) -> None:
    if state.sentence:
        st.error(state.sentence, icon=":material/error:")
    if group is not None and group.message:
        st.warning(group.message, icon=":material/warning:")
    for run, planned in zip(group.runs, group.planned, strict=False) if group is not None else ():
        if run.state is RunState.FAILED:
            sentence = f"{planned.label}: {run.message}"
            st.warning(plain(sentence), icon=":material/warning:")
    if state.missing:
        st.warning(f"{counted(len(state.missing), 'run')} of this address is not kept here.")


def _start(groups: Groups, state: ComparePageState) -> None:
    state.sentence = ""
    try:
        group = groups.start(planned_from_widgets())
    except TokenByTokenError as error:
        state.sentence = str(error)
        return
    state.group_id = group.group_id
    state.run_ids, state.traces, state.missing = (), (), ()
    st.query_params.clear()
    st.query_params["group"] = group.group_id


def _take_address(hub: Hub, store: RunStore, state: ComparePageState) -> None:
    """Show the runs that the address names, where they are not shown already."""
    asked = st.query_params.get("runs", "")
    wanted = tuple(dict.fromkeys(filter(None, asked.split(","))))[:MAX_SHOWN]
    if wanted and wanted != state.run_ids:
        state.group_id = None
        _capture(hub, store, state, wanted)


def _capture(hub: Hub, store: RunStore, state: ComparePageState, keys: tuple[str, ...]) -> None:
    """Show these runs and put them into the address, so that it opens them for others."""
    found = {key: _trace(hub, store, key) for key in keys}
    state.run_ids = keys
    state.traces = tuple(trace for trace in found.values() if trace is not None and trace.events)
    state.missing = tuple(key for key, trace in found.items() if trace is None)
    st.query_params.clear()
    if keys:
        st.query_params["runs"] = ",".join(keys)


def _trace(hub: Hub, store: RunStore, key: str) -> RunTrace | None:
    run = hub.find(key)
    trace = hub.snapshot(run) if run is not None and run.state.is_final else None
    if trace is not None:
        return trace
    try:
        return store.open(key)
    except TokenByTokenError:
        return None


def _going(hub: Hub, groups: Groups, group: RunGroup) -> None:
    """Show how far the comparison is, and the run that goes."""
    stop_button(
        partial(groups.stop, group),
        help_text="End the run that goes; the runs made until then are compared.",
    )

    @st.fragment(run_every=POLL_S)
    def progress() -> None:
        if group.is_over:
            st.rerun()
        groups.touch(group)
        done = sum(run.state.is_final for run in group.runs)
        place = min(len(group.runs), len(group.planned))
        label = group.planned[max(place - 1, 0)].label
        st.progress(
            done / len(group.planned), text=f"Run {place} of {len(group.planned)}: {plain(label)}"
        )
        if group.current is not None:
            run_panel(hub, group.current)

    progress()
