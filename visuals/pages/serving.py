"""The Serving page: an engine at an address, its own figures from second to second, and loads.

A thin script: it never loops or sleeps. What is read and sent belongs to threads of the server.
"""

from __future__ import annotations

import streamlit as st

from visuals.live.serving_watch import ServingWatches
from visuals.pages.endpoint_source import chosen_endpoint, endpoint_source
from visuals.pages.serving_engine import engine_section
from visuals.pages.session import enter_page
from visuals.words import serving as words


def serving_page(watches: ServingWatches) -> None:
    """Draw the page."""
    enter_page("serving")
    chosen = chosen_endpoint()
    left, right = st.columns([4, 8], gap="medium")
    with left:
        st.markdown(words.WHOSE)
        endpoint_source()
    with right:
        if chosen is None:
            st.info(words.HOW_TO_START)
            return
        engine_section(watches, chosen)
