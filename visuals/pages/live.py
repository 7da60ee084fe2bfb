"""The Live page: a prompt, its controls, and the panel that follows the run.

A thin script: it never loops or sleeps. The run belongs to the hub; this page holds its id.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.process.messages import Action
from inference.records.errors import TokenByTokenError
from inference.runs.recordings import FIRST_RUN, recorded_runs
from inference.runs.run_file import read_bytes, to_json
from visuals.charts.units import date_text
from visuals.live.endpoint_runs import EndpointRun, EndpointRuns
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.batch_setup import batch_tools, batched
from visuals.pages.composer import current_order, prompt_box, prompt_tools
from visuals.pages.endpoint_controls import (
    endpoint_controls,
    is_elsewhere,
    source_tools,
    start_elsewhere,
)
from visuals.pages.endpoint_view import endpoint_files, endpoint_view
from visuals.pages.markdown import escaped, shortened
from visuals.pages.page_states import LivePageState
from visuals.pages.panels import run_panel
from visuals.pages.presenter import stage_of_address
from visuals.pages.recorded import recorded_line
from visuals.pages.run_settings import Pace, pace_of
from visuals.pages.session import bound, change, enter_page, session, take_settings, value_of
from visuals.pages.settings_address import NAMES, said_of, settings_said
from visuals.pages.settings_of_runs import settings_of, settings_of_trace
from visuals.pages.step_back import earlier_step
from visuals.pages.transport_buttons import hold_button, step_button, stop_button
from visuals.pages.widget_keys import RUN_FILE
from visuals.panel.check_badge import check_badge
from visuals.panel.loading import loading_line
from visuals.panel.player_page import player_page

TOOLS_WIDTH = 744
EARLIER = "an earlier step"  # before the model's name, while one is looked at


def live_page(hub: Hub, endpoint_runs: EndpointRuns) -> None:
    """Draw the page: a run of this machine, or of an engine at an address."""
    is_entered = session().page != "live"
    state = _state()
    elsewhere = _elsewhere(hub, endpoint_runs, state)
    # Once for the whole page: a run that ends while it is drawn has to be drawn again.
    is_over = elsewhere is None or elsewhere.state.is_final
    run = _run(hub, state) if elsewhere is None else None
    _settings_in_address(state, is_entered=is_entered)
    shown = run.state if run is not None else None
    with st.container(horizontal=True, vertical_alignment="top", key="composer"):
        prompt_box()
        with st.container(width=TOOLS_WIDTH, gap="xsmall"):
            if is_elsewhere() or not is_over:
                is_busy = not is_over or (shown is not None and not shown.is_final)
                start = partial(_start_elsewhere, endpoint_runs, state)
                endpoint_controls(elsewhere, start, is_busy=is_busy)
            else:
                _controls(hub, state, run)
            with st.container(horizontal=True, gap="xsmall", key="tools"):
                prompt_tools(hub)
                batch_tools(hub)
                source_tools()
                _run_file_actions(hub, state, run, elsewhere)
    if elsewhere is None:
        check_badge(hub)
    _sentences(state)
    if elsewhere is not None:
        endpoint_view(elsewhere, is_over=is_over)
    elif run is None:
        _waiting_engine(hub)
        _recorded(hub)
    else:
        with st.container(key="steps"):  # there before the slider is, so that nothing moves
            earlier = earlier_step(hub, state, run)
        stage = stage_of_address()
        if earlier is None:
            run_panel(hub, run, state=shown, stage=stage)
        else:
            run_panel(hub, earlier, label=EARLIER, state=earlier.state, stage=stage)


def _sentences(state: LivePageState) -> None:
    """Say what went wrong, and what should be known of the run shown."""
    if state.sentence:
        st.error(escaped(state.sentence), icon=":material/error:")
    if state.note:
        st.info(escaped(state.note), icon=":material/info:")
    if state.dead_run_id is not None:
        st.warning(
            f"This address names run {escaped(shortened(state.dead_run_id))}, which is not on this "
            "server. It may have been deleted, or made on another server. Open its run file if you "
            "have one, or press Start to make a run of your own.",
            icon=":material/link_off:",
        )


def _state() -> LivePageState:
    asked = st.query_params.get("run")
    state = enter_page("live").live_page
    if asked is None and state.run_id is not None:
        st.query_params["run"] = state.run_id  # another page took it out of the address
    elif asked is not None and asked not in (state.run_id, state.dead_run_id):
        state.run_id, state.sentence = asked, ""  # the browser's back and forward buttons
    if asked != state.dead_run_id:
        state.dead_run_id = None
    return state


def _elsewhere(hub: Hub, endpoint_runs: EndpointRuns, state: LivePageState) -> EndpointRun | None:
    """Return the run at an address that this tab looks at; None where it is none of those."""
    if state.run_id is None or hub.find(state.run_id) is not None:
        return None
    return endpoint_runs.find(state.run_id)


def _run(hub: Hub, state: LivePageState) -> LiveRun | None:
    """Return the run this tab looks at; None where there is none, or it is not kept."""
    if state.run_id is None:
        return None
    run = hub.find(state.run_id) or hub.reopen(state.run_id)
    if run is None:
        state.dead_run_id, state.run_id = state.run_id, None
    elif run.run_id != state.matched_run_id:
        _match_widgets(hub, run)
    state.matched_run_id = state.run_id
    return run


def _match_widgets(hub: Hub, run: LiveRun) -> None:
    """Let the prompt box and all settings say what this run was made with; it was not made here.

    A reload begins a session anew, with the settings of the run on screen and not the defaults.
    """
    trace = hub.snapshot(run)
    if run.order is not None:
        take_settings(settings_of(run.order))
    elif trace is not None and trace.requests:
        take_settings(settings_of_trace(trace))
    if (pace := pace_of(run.steps_per_s)) is not None:
        change(pace=pace)
    session().live_page.usual = session().run


def _settings_in_address(state: LivePageState, *, is_entered: bool) -> None:
    """Take the settings that the address says when the session begins; then have it say them.

    It is changed only where the settings have, or on return to the page, so that the browser's back
    button is not undone.
    """
    asked = st.query_params.to_dict()
    if state.said is None:
        take_settings(settings_said(asked, session().run))
    said = said_of(session().run, state.usual)
    others = {name: value for name, value in asked.items() if name not in NAMES}
    if (said != state.said or is_entered) and others | said != asked:
        st.query_params.from_dict(others | said)
    state.said = said


def _follow(state: LivePageState, run: LiveRun | EndpointRun) -> None:
    """Follow this run and put its id into the address, so that a reload brings it back."""
    state.run_id, state.dead_run_id, state.earlier = run.run_id, None, None
    state.sentence = state.note = ""
    st.query_params["run"] = run.run_id


def _controls(hub: Hub, state: LivePageState, run: LiveRun | None) -> None:
    """Start, pause or resume, single step, stop, and the pace."""
    is_busy = run is not None and not run.state.is_final
    with st.container(horizontal=True, gap="xsmall", key="controls"):
        st.button(
            "Start",
            key="start",
            type="primary",
            icon=":material/play_arrow:",
            disabled=is_busy,
            on_click=_start,
            args=(hub, state),
            help="Feed the prompt to the model and follow every step.",
        )
        hold_button(
            hub,
            run,
            go="Resume",
            help_text="Hold the run before its next step; waiting is not part of any step time.",
        )
        step_button(
            hub,
            run,
            partial(_submit, hub, state),
            help_text="One press, one forward pass. Without a run it starts one and feeds the "
            "prompt.",
        )
        stop_button(
            partial(_stop, hub, run),
            help_text="End the run; what was recorded is kept.",
            is_off=not is_busy,
        )
        st.selectbox(
            "Pace",
            list(Pace),
            **bound("pace", then=partial(_change_pace, hub, run)),
            width=230,
            label_visibility="collapsed",
            help="At most this many steps per second, for a lecture. The wait is "
            "not part of any step time.",
        )


def _start_elsewhere(endpoint_runs: EndpointRuns, state: LivePageState) -> None:
    try:
        run = start_elsewhere(endpoint_runs)
    except TokenByTokenError as error:
        state.sentence = str(error)
        return
    _follow(state, run)


def _start(hub: Hub, state: LivePageState) -> None:
    _submit(hub, state, is_paused=False)


def _submit(hub: Hub, state: LivePageState, *, is_paused: bool) -> LiveRun | None:
    """Queue what the widgets ask for; None when it cannot be run, and the page says why."""
    try:
        run = hub.submit(batched(current_order(is_paused=is_paused)))
    except TokenByTokenError as error:
        state.sentence = str(error)
        return None
    _follow(state, run)
    state.matched_run_id = run.run_id
    state.usual = session().run
    return run


def _stop(hub: Hub, run: LiveRun | None) -> None:
    if run is not None:
        hub.control(run, Action.STOP)


def _change_pace(hub: Hub, run: LiveRun | None) -> None:
    if run is not None:
        hub.control(run, Action.PACE, session().run.pace.steps_per_s)


def _waiting_engine(hub: Hub) -> None:
    """Say how far the engine is while no run was started."""
    status = hub.engine_status()
    if status.error:
        st.warning(f"The default model could not be loaded: {escaped(status.error)}")
    elif status.stage is not None:
        loading_line(status)


def _recorded(hub: Hub) -> None:
    """Show the recorded run, labelled with where and when it was made."""
    recorded = recorded_runs(FIRST_RUN)
    if not recorded:
        st.info("Type a prompt and press Start.")
        return
    trace, info = recorded[0], recorded[0].info
    recorded_line(
        "A recorded run",
        info.device,
        info.started_at,
        info.model_id,
        "Press **Start** to make your own here.",
    )
    run = hub.adopt(trace)
    run_panel(hub, run, key="recorded", stage=stage_of_address())


def _run_file_actions(
    hub: Hub, state: LivePageState, run: LiveRun | None, elsewhere: EndpointRun | None
) -> None:
    """Save this run, as a run file or a page that plays it, or open another from a file."""
    with st.popover("Run file", icon=":material/save:", key="run-files"):
        if elsewhere is not None:
            endpoint_files(elsewhere)
        else:
            _downloads(hub, run)
        st.file_uploader(
            "Open a run file",
            type=["json", "gz"],
            key=RUN_FILE,
            on_change=_open_file,
            args=(hub, state),
            help="A file saved here or written by the command line.",
        )


def _downloads(hub: Hub, run: LiveRun | None) -> None:
    """Save a run of this machine, as a run file or a page that plays it."""
    is_over = run is not None and run.state.is_final and hub.snapshot(run) is not None
    st.download_button(
        "Save this run",
        data=lambda: _run_file(hub, run),
        file_name=f"token-by-token-{run.run_id if run is not None else 'none'}.json",
        mime="application/json",
        key="save",
        icon=":material/download:",
        on_click="ignore",
        disabled=run is None,
        help="The run so far as a JSON run file: every step, token, byte count and sample.",
    )
    st.download_button(
        "Save as a page that plays",
        data=lambda: _player(hub, run),
        file_name=f"token-by-token-{run.run_id if run is not None else 'none'}.html",
        mime="text/html",
        key="save-player",
        icon=":material/smart_display:",
        on_click="ignore",
        disabled=not is_over,
        help="Once the run is over: all its panels in one file that plays offline in any browser.",
    )


def _open_file(hub: Hub, state: LivePageState) -> None:
    upload = value_of(RUN_FILE)
    if upload is None:
        return
    try:
        traces = read_bytes(upload.getvalue())
    except TokenByTokenError as error:
        state.sentence = f"{upload.name}: {error}"
        return
    _follow(state, hub.adopt(traces[0]))
    info = traces[0].info
    state.note = (
        f"Opened from {upload.name}: made on {info.device.name} in {info.device.dtype} on "
        f"{date_text(info.started_at)} with {info.model_id}."
    )
    if len(traces) > 1:
        state.note += f" The file holds {len(traces)} runs; the first is shown."


def _run_file(hub: Hub, run: LiveRun | None) -> str:
    trace = hub.whole(run) if run is not None else None
    return to_json((trace,) if trace is not None else ())


def _player(hub: Hub, run: LiveRun | None) -> bytes:
    trace = hub.whole(run) if run is not None else None
    return b"" if trace is None else player_page(trace).content
