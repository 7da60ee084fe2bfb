"""The queue of a room: who waits for what, and a button that ends it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from inference.process.messages import Action
from visuals.charts.units import counted
from visuals.live.fair_use import new_tokens, unfinished
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.pages.markdown import escaped, shortened

LOOKED_EVERY_S = 2.0
NAME_CHARACTERS = 4


def room_queue(hub: Hub, visitor: str) -> None:
    """Draw a line for each run that goes or waits.

    Args:
        hub: Has the runs.
        visitor: Who looks.
    """

    @st.fragment(run_every=LOOKED_EVERY_S)
    def lines() -> None:
        runs = unfinished(hub)
        with st.expander(f"Queue of this server: {counted(len(runs), 'run')}", key="room-queue"):
            if not runs:
                st.caption("Nothing is running or waiting.")
            for run in runs:
                _line(hub, run, visitor)

    lines()


def _line(hub: Hub, run: LiveRun, visitor: str) -> None:
    """Draw a run: whose, where it stands, what it is, and the button that ends it."""
    status, order = hub.status(run), run.order
    who = "you" if run.owner == visitor else f"visitor {run.owner[:NAME_CHARACTERS]}"
    place = f"{status.queue_position} in the queue" if status.queue_position else status.state.value
    with st.container(horizontal=True, vertical_alignment="center", key=f"queued-{run.run_id}"):
        st.button(
            "End",
            key=f"end-{run.run_id}",
            icon=":material/stop:",
            on_click=partial(hub.control, run, Action.STOP),
            help="End this run, or take it out of the queue; what was recorded is kept.",
        )
        asked = ""
        if order is not None:
            prompt = shortened(" ".join(order.prompts[0].split()))
            more = f" and {len(order.prompts) - 1} more" if len(order.prompts) > 1 else ""
            asked = f" · {counted(new_tokens(order), 'new token')} at most · {prompt}{more}"
        st.caption(escaped(f"{who} · {place}{asked}"))
