"""The loading line on a page: a component that asks the server itself and reruns nothing."""

from __future__ import annotations

from streamlit.components import v2

from visuals.live.engine_route import STATUS_PATH, engine_item
from visuals.live.model_slot import EngineStatus
from visuals.panel.modules import loader, loading_styles
from visuals.panel.routes import scripts_address

_component = v2.component(
    "token_by_token_loading",
    html="",
    css=loading_styles(),
    js=loader(),
    isolate_styles=True,
)


def loading_line(status: EngineStatus) -> None:
    """Show how far the loading of the model is, from this status on until it has ended."""
    _component(
        key="loading",
        data={
            "entry": "loading_line.js",
            "scripts": scripts_address(),
            "status_address": STATUS_PATH,
            "status": engine_item(status),
        },
    )
