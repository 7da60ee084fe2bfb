"""The line about a server that is gone: a component that asks the server itself, on every page."""

from __future__ import annotations

from streamlit.components import v2

from visuals.live.hub import Hub
from visuals.live.server_route import SERVER_PATH, server_item
from visuals.panel.modules import loader, server_styles
from visuals.panel.routes import scripts_address

_component = v2.component(
    "token_by_token_server",
    html="",
    css=server_styles(),
    js=loader(),
    isolate_styles=True,
)


def server_line(hub: Hub) -> None:
    """Say it where the server is gone or another than drew the page, or its engine died."""
    _component(
        key="server-line",
        data={
            "entry": "server_line.js",
            "scripts": scripts_address(),
            "server_address": SERVER_PATH,
            "drawn": server_item(hub),
        },
    )
