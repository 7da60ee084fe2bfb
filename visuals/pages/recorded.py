"""The line above what comes with the program, until the user's own takes its place."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from inference.records.model import Device
from visuals.charts.units import date_text
from visuals.pages.markdown import escaped


def recorded_line(what: str, device: Device, made_at: datetime, model_id: str, own: str) -> None:
    """Say what is recorded, where and when, and how one's own comes in its place.

    Args:
        what: Begins the sentence, such as "A recorded run".
        device: What it was made on.
        made_at: When.
        model_id: With which model; empty where that does not matter.
        own: A sentence in Markdown: what to do for one's own.
    """
    model = f" with {escaped(model_id)}" if model_id else ""
    st.markdown(
        f":material/history: **{what}** from {escaped(device.name)} in {escaped(device.dtype)}, "
        f"{date_text(made_at)}{model}. {own}"
    )
