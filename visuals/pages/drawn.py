"""How a page draws a chart or a small table: as wide as its place, in the page's theme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from visuals.charts.theme import Chart, Row, with_rows_only


def draw_chart(chart: Chart, *, key: str) -> None:
    """Draw a chart that has its rows, without the layers that have none.

    Streamlit's theme lets the last label of an axis stand half outside of the picture.
    """
    drawn = with_rows_only(chart).configure_axisX(labelFlush=True, labelFlushOffset=-3)
    st.altair_chart(drawn, width="stretch", theme="streamlit", key=key)


def draw_table(rows: Sequence[Row], *, caption: str, is_wide: bool = False) -> None:
    """Draw a few rows whose texts are shown whole; nothing of them is markup.

    Args:
        rows: With the same columns each.
        caption: What the table shows, for those who cannot see it.
        is_wide: It has more columns than a narrow window, where it is then moved sideways.
    """
    if not rows:
        return
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row.values())}</tr>"
        for row in rows
    )
    table = (
        f'<table class="plain"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    region = f'<div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0">'
    st.html(f"{region}{table}</div>" if is_wide else table)
