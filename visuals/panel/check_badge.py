"""The badge beside the model's name: a component that asks the server itself and reruns nothing."""

from __future__ import annotations

from streamlit.components import v2

from visuals.live.check_route import CHECK_PAGE, CHECK_PATH, check_item
from visuals.live.hub import Hub
from visuals.panel.modules import badge_styles, loader
from visuals.panel.routes import scripts_address

_component = v2.component(
    "token_by_token_check_badge",
    html="",
    css=badge_styles(),
    js=loader(),
    isolate_styles=True,
)


def check_badge(hub: Hub) -> None:
    """Show the model held and what was checked of it here, from this moment on."""
    _component(
        key="check-badge",
        data={
            "entry": "check_badge.js",
            "scripts": scripts_address(),
            "status_address": CHECK_PATH,
            "page_address": CHECK_PAGE,
            "status": check_item(hub),
        },
    )
