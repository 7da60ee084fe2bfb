"""The route that says how far the engine is with its model.

The Live page's loading line asks here by itself. A timer of the page would run the page again, also
while it is being left, and can win over the press that leaves it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from visuals.live.hub import Hub
from visuals.live.model_slot import EngineStatus

STATUS_PATH = "live/engine"  # below the server's address


def engine_routes(hub: Hub) -> list[Route]:
    """Return the route of the engine's status over this hub."""

    def status(_request: Request) -> JSONResponse:  # no coroutine, so Starlette runs it on a thread
        return JSONResponse(engine_item(hub.engine_status()), headers={"cache-control": "no-store"})

    return [Route(f"/{STATUS_PATH}", status)]


def engine_item(status: EngineStatus) -> dict[str, object]:
    """Return what the engine does about its model, as the loading line knows it."""
    stage = status.stage
    return {
        "stage": stage.stage if stage is not None else "",
        "ratio": stage.ratio if stage is not None else None,
        "error": status.error,
    }
