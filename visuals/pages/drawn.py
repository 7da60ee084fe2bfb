"""How a page draws a chart: as wide as its place, in the page's theme, without empty layers."""

from __future__ import annotations

import streamlit as st

from visuals.charts.theme import Chart, with_rows_only


def draw_chart(chart: Chart, *, key: str) -> None:
    """Draw a chart that has its rows."""
    st.altair_chart(with_rows_only(chart), width="stretch", theme="streamlit", key=key)
