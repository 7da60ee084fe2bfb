"""The Serving page: an engine at an address, its own figures from second to second, and loads.

A thin script: it never loops or sleeps. What is read and sent belongs to threads of the server.
"""

from __future__ import annotations

import streamlit as st

from visuals.live.endpoint_runs import EndpointRuns
from visuals.live.hub import Hub
from visuals.live.load_runs import LoadRuns
from visuals.live.serving_watch import ServingWatches
from visuals.pages.endpoint_source import chosen_endpoint, endpoint_source
from visuals.pages.serving_engine import engine_section
from visuals.pages.serving_load import load_section
from visuals.pages.serving_results import results_section
from visuals.pages.session import enter_page
from visuals.words import serving as words


def serving_page(
    hub: Hub,
    watches: ServingWatches,
    runs: EndpointRuns,
    loads: LoadRuns,
    *,
    is_watching: bool = False,
) -> None:
    """Draw the page.

    Args:
        hub: Its model's tokenizer counts lengths, and its sweep stands beside a load's.
        watches: The engines that are read.
        runs: What the Live page sent to engines from this server.
        loads: The loads that are sent from this server, and were.
        is_watching: The visitor may only watch, and can send none.
    """
    enter_page("serving")
    left, right = st.columns([4, 8], gap="medium")
    with left:
        st.markdown(words.WHOSE)
        endpoint_source()
        chosen = chosen_endpoint()
    with right:
        engine, load, results = st.tabs(["Engine", "Load", "Results"])
        with engine:
            if chosen is None:
                st.info(words.HOW_TO_START)
            else:
                engine_section(watches, runs, loads, chosen)
        with load:
            load_section(hub, loads, chosen, is_watching=is_watching)
        with results:
            results_section(hub, loads, is_watching=is_watching)
