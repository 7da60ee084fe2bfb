"""The route that says what was checked of the model held; the Live page's badge asks here itself.

A timer of the page would run the page again, also while it is being left.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from visuals.charts.self_check import badge
from visuals.live.hub import Hub

CHECK_PATH = "live/check"  # below the server's address
CHECK_PAGE = "check"  # likewise


def check_routes(hub: Hub) -> list[Route]:
    """Return the route of the self-check over this hub."""

    def status(_request: Request) -> JSONResponse:  # no coroutine, so Starlette runs it on a thread
        return JSONResponse(check_item(hub), headers={"cache-control": "no-store"})

    return [Route(f"/{CHECK_PATH}", status)]


def check_item(hub: Hub) -> dict[str, object]:
    """Return the model held and its badge; ``is_changing`` while another answer may come."""
    engine, status = hub.engine_status(), hub.check_status()
    ready = engine.ready
    state, words = badge(status.check, status.sentence, is_going=status.is_going)
    model = "" if ready is None else f"{ready.model_id} \u00b7 {ready.device.dtype}"
    return {
        "model": model,
        "state": state if ready is not None else "none",
        "words": words if ready is not None else "",
        "is_changing": engine.stage is not None or status.is_going,
    }
