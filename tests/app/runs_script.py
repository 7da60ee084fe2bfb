"""The Runs page on a scripted engine and a store of its own, as AppTest runs it."""

from __future__ import annotations

import streamlit as st

from tests.app.stage import STAGE
from visuals.pages.runs import WaysOut, runs_page


def compared(keys: object) -> None:
    """Stand in for the way to the Compare page."""
    st.session_state["compared"] = keys


def live() -> None:
    """Stand in for the way to the Live page."""
    st.session_state["live"] = True


def recorded() -> None:
    """Stand in for the way to the playlist of the recorded runs."""
    st.session_state["recorded"] = True


if __name__ == "__main__":  # not in a process spawned by what the page shows
    runs_page(
        STAGE.under_test.hub,
        STAGE.store,
        STAGE.endpoint_runs.store,
        WaysOut(compare=compared, live=live, recorded=recorded),
        STAGE.problem,
    )
