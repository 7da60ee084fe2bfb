"""The loading line on a page: a component that asks the server itself and reruns nothing."""

from __future__ import annotations

from pathlib import Path

from streamlit.components import v2

from visuals.live.engine_route import engine_item
from visuals.live.model_slot import EngineStatus

_FOLDER = Path(__file__).parent

_component = v2.component(
    "token_by_token_loading",
    html="",
    css=(_FOLDER / "loading.css").read_text(encoding="utf-8"),
    js=(_FOLDER / "loading.js").read_text(encoding="utf-8"),
    isolate_styles=True,
)


def loading_line(status: EngineStatus) -> None:
    """Show how far the loading of the model is, from this status on until it has ended."""
    _component(key="loading", data=engine_item(status))
