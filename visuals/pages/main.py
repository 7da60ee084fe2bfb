"""The page script that streamlit runs: the navigation and nothing else."""

from __future__ import annotations

import streamlit as st

from visuals.examples import ASSETS
from visuals.live.hub import app_hub
from visuals.pages.live import live_page


def show_live() -> None:
    """Show the Live page on the app's hub."""
    live_page(app_hub())


st.set_page_config(page_title="Token by Token", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.logo(str(ASSETS / "logo.svg"), size="large")
st.navigation(
    [st.Page(show_live, title="Live", url_path="live", default=True)], position="top"
).run()
