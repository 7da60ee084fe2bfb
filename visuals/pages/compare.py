"""The Compare page: prompts or settings side by side, made here one after another or as one batch.

A thin script: it never loops or sleeps. The runs belong to the hub; the group continues by itself.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.records.errors import TokenByTokenError
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.recordings import COMPARISON, recorded_runs
from inference.runs.store import RunStore
from visuals.charts.units import counted
from visuals.live.groups import Groups, RunGroup
from visuals.live.hub import Hub
from visuals.pages.compare_results import show_results
from visuals.pages.compare_setup import planned_from_widgets, setup
from visuals.pages.markdown import escaped, shortened
from visuals.pages.page_states import ComparePageState
from visuals.pages.panels import run_panel
from visuals.pages.recorded import recorded_line
from visuals.pages.replays import shipped_runs
from visuals.pages.session import enter_page
from visuals.pages.transport_buttons import stop_button

POLL_S = 1.0
MAX_SHOWN = 160
MAX_NAMED = 5  # runs of an address that are not kept


def compare_page(hub: Hub, groups: Groups, store: RunStore) -> None:
    """Draw the page."""
    state = _state()
    group = groups.find(state.group_id) if state.group_id else None
    is_active = group is not None and not group.is_over
    if is_active and group is not None:
        _progress(hub, groups, group)
        return
    if group is not None and group.compared_ids != state.run_ids:
        _show(hub, store, state, group.compared_ids)
    _take_address(hub, store, state)
    _sentences(state, group, _dead_group(groups))
    with st.expander(
        "Choose what to compare", expanded=not state.traces, icon=":material/tune:", key="setup"
    ):
        setup(hub, lambda: _start(groups, state))
    if state.traces:
        show_results(state.traces)
    else:
        _recorded()


def _state() -> ComparePageState:
    state = enter_page("compare").compare_page
    if state.group_id is None:
        state.group_id = st.query_params.get("group")
    return state


def _recorded() -> None:
    """Show a recorded comparison, until there is one that was made here."""
    traces = recorded_runs(COMPARISON)
    if not traces:
        return
    info = traces[0].info
    recorded_line(
        "A recorded comparison of three prompts",
        info.device,
        info.started_at,
        info.model_id,
        "Choose prompts above and press **Compare** for one of your own.",
    )
    show_results(traces)


def _dead_group(groups: Groups) -> str | None:
    """Return the comparison that the address names and nobody has; None where it names none."""
    asked = st.query_params.get("group")
    return asked if asked and groups.find(asked) is None else None


def _sentences(state: ComparePageState, group: RunGroup | None, dead_group: str | None) -> None:
    """Say what the last press or the address did not bring."""
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    if group is not None and group.message:
        st.warning(escaped(group.message), icon=":material/warning:")
    for run, planned in zip(group.runs, group.planned, strict=False) if group is not None else ():
        if run.state is RunState.FAILED:
            sentence = f"{planned.label}: {run.message}"
            st.warning(escaped(sentence), icon=":material/warning:")
    if state.missing:
        st.warning(_missing(state), icon=":material/link_off:")
    if dead_group is not None:
        st.warning(
            f"This address names comparison {escaped(shortened(dead_group))}, which is not on this "
            "server. An address like this works until the server restarts; the address of a "
            "finished comparison names its runs and works for as long as they are kept.",
            icon=":material/link_off:",
        )


def _missing(state: ComparePageState) -> str:
    """Return which runs of the address are not kept, at most a few of them by name."""
    verb = "is" if len(state.missing) == 1 else "are"
    names = ", ".join(escaped(shortened(key)) for key in state.missing[:MAX_NAMED])
    more = ", \u2026" if len(state.missing) > MAX_NAMED else ""
    nothing = "" if state.traces else " There is nothing to compare."
    return (
        f"{counted(len(state.missing), 'run')} in this address {verb} not on this server: "
        f"{names}{more}.{nothing}"
    )


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
        _show(hub, store, state, wanted)


def _show(hub: Hub, store: RunStore, state: ComparePageState, keys: tuple[str, ...]) -> None:
    """Show these runs and put them into the address, so that it opens them for others."""
    traces = {key: _trace(hub, store, key) for key in keys}
    state.run_ids = keys
    state.traces = tuple(trace for trace in traces.values() if trace is not None and trace.events)
    state.missing = tuple(key for key, trace in traces.items() if trace is None)
    st.query_params.clear()
    if keys:
        st.query_params["runs"] = ",".join(keys)


def _trace(hub: Hub, store: RunStore, key: str) -> RunTrace | None:
    run = hub.find(key)
    trace = hub.snapshot(run) if run is not None and run.state.is_final else None
    trace = trace or shipped_runs().get(key)
    if trace is not None:
        return trace
    try:
        return store.open(key)
    except TokenByTokenError:
        return None


def _progress(hub: Hub, groups: Groups, group: RunGroup) -> None:
    """Show how far the comparison is, and the run that is going on."""
    stop_button(
        partial(groups.stop, group),
        help_text="End the current run; the runs made until then are compared.",
    )

    @st.fragment(run_every=POLL_S)
    def progress() -> None:
        if group.is_over:
            st.rerun()
        groups.touch(group)
        done = sum(run.state.is_final for run in group.runs)
        number = min(len(group.runs), len(group.planned))
        label = escaped(group.planned[max(number - 1, 0)].label)
        st.progress(
            done / len(group.planned), text=f"Run {number} of {len(group.planned)}: {label}"
        )
        if group.current is not None:
            run_panel(hub, group.current)

    progress()
