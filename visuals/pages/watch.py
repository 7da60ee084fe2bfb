"""The Live page of those who may only watch: the newest run, or the one that the address names."""

from __future__ import annotations

import streamlit as st

from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.panels import run_panel

ASKED_EVERY_S = 2.0


def watch_page(hub: Hub) -> None:
    """Draw the page, which has no widget that changes anything on the server."""
    st.caption("You are watching. Whoever has the link to operate starts and steers the runs.")
    asked = st.query_params.get("run")
    named = (hub.find(asked) or hub.reopen(asked)) if asked else None
    if asked and named is None:
        st.warning(
            "The run that this address names is not on this server. The newest run is shown.",
            icon=":material/link_off:",
        )
    run = named or newest(hub)
    if named is None:
        _follow(hub, None if run is None else run.run_id)
    if run is None:
        st.info("No run has been started yet. The first one appears here by itself.")
    else:
        run_panel(hub, run, state=run.state)


def newest(hub: Hub) -> LiveRun | None:
    """Return the run made here that is the furthest along: one that goes, else the last to end."""
    made = [run for run in hub.runs() if run.order is not None]
    started = [run for run in made if hub.snapshot(run) is not None]
    going = [run for run in started if not run.state.is_final]
    return next(iter(reversed(going or started or made)), None)


def _follow(hub: Hub, shown: str | None) -> None:
    @st.fragment(run_every=ASKED_EVERY_S)
    def follow() -> None:
        run = newest(hub)
        if run is not None and run.run_id != shown:
            st.rerun()

    follow()
