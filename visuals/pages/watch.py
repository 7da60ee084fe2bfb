"""The Live page of those who may only watch: what is presented, else the newest run.

While somebody presents, the panel is told by its own socket what to show; the page does nothing.
"""

from __future__ import annotations

import streamlit as st

from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.presenting import Presenting
from visuals.live.watching import ONLY_WATCHING
from visuals.pages.panels import NOTHING_FOLLOWS, run_panel
from visuals.pages.presenter import PRESENT_PARAMETER
from visuals.pages.session import session
from visuals.panel.stage import viewer_stage

ASKED_EVERY_S = 2.0


def watch_page(hub: Hub, presenting: Presenting) -> None:
    """Draw the page, which has no widget that changes anything on the server."""
    st.caption("You are watching. Whoever has the link to operate starts and steers the runs.")
    if PRESENT_PARAMETER in st.query_params:
        st.warning(f"You cannot present: {ONLY_WATCHING}.", icon=":material/lock:")
    asked = st.query_params.get("run")
    named = (hub.find(asked) or hub.reopen(asked)) if asked else None
    if asked and named is None:
        st.warning(
            "The run that this address names is not on this server. The newest run is shown.",
            icon=":material/link_off:",
        )
    presented = _presented(hub, presenting)
    run = presented or named or _left_behind(hub) or newest(hub)
    if presented is None and named is None:
        _follow(hub, presenting, _id_of(run))
    if run is None:
        st.info("No run has been started yet. The first one appears here by itself.")
    else:
        # Thirty pages without a button would run again for each press.
        run_panel(hub, run, state=NOTHING_FOLLOWS, stage=viewer_stage(is_on=presented is not None))


def newest(hub: Hub) -> LiveRun | None:
    """Return the run made here that is the furthest along: one that goes, else the last to end."""
    made = [run for run in hub.runs() if run.order is not None]
    started = [run for run in made if hub.snapshot(run) is not None]
    going = [run for run in started if not run.state.is_final]
    return next(iter(reversed(going or started or made)), None)


def _presented(hub: Hub, presenting: Presenting) -> LiveRun | None:
    """Return the run that is presented, and remember it for when its presenter is gone."""
    now = presenting.current
    run = hub.find(now.run_id) if now is not None else None
    if run is not None:
        session().watched = (run.run_id, _id_of(newest(hub)))
    return run


def _left_behind(hub: Hub) -> LiveRun | None:
    """Return the run that was presented last, until a newer one begins."""
    run_id, newest_then = session().watched
    return hub.find(run_id) if run_id and _id_of(newest(hub)) == newest_then else None


def _follow(hub: Hub, presenting: Presenting, shown: str) -> None:
    @st.fragment(run_every=ASKED_EVERY_S)
    def follow() -> None:
        run = _left_behind(hub) or newest(hub)
        is_presented = not shown and presenting.current is not None  # without a panel to say so
        if is_presented or _id_of(run) not in ("", shown):
            st.rerun()

    follow()


def _id_of(run: LiveRun | None) -> str:
    return "" if run is None else run.run_id
