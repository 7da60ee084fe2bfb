"""The route that says how it stands with the roofs of a run, for the roofline panel.

The panel asks here by itself once a run is over: roofs that are measured afterwards are its run's
too, and it then follows the run anew. No torch.
"""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from inference.process.messages import MeasureCeilings
from inference.records.run import RunInfo
from visuals.charts.roofline_rows import roofs_version
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

ROOFS_PATH = "live/roofs"  # below the server's address
RECORDED = "This run was recorded without roofs."
BY_ITSELF = "No roofs yet: they are measured automatically once the engine is idle."


def roofs_routes(hub: Hub) -> list[Route]:
    """Return the route over this hub."""

    def standing(request: Request) -> JSONResponse:  # no coroutine: it takes the hub's lock
        run = hub.find(request.path_params["run_id"])
        given = request.query_params.get("k", "").encode()
        if run is None or not hmac.compare_digest(given, run.token.encode()):
            return JSONResponse({}, 404, headers={"cache-control": "no-store"})
        return JSONResponse(roofs_item(hub, run), headers={"cache-control": "no-store"})

    return [Route(f"/{ROOFS_PATH}/{{run_id}}", standing)]


def roofs_item(hub: Hub, run: LiveRun) -> dict[str, object]:
    """Return how it stands with a run's roofs.

    Returns:
        ``version`` differs wherever the roofs do and is empty without any; ``words`` say what is to
        be known; ``is_offered`` whether they can be measured now; ``is_pending`` whether that may
        change by itself.
    """
    trace = hub.snapshot(run)
    info = trace.info if trace is not None else None
    version = "" if info is None else roofs_version(info)
    item: dict[str, object] = {
        "version": version,
        "words": "",
        "is_offered": False,
        "is_pending": False,
    }
    if info is None:
        return item
    if run.order is None:
        return item | {"words": "" if version else RECORDED}
    status = hub.measure_status()
    if status.kind is MeasureCeilings:
        stage = f" ({status.stage.stage})" if status.stage is not None else ""
        return item | {"words": f"The roofs are being measured{stage} \u2026", "is_pending": True}
    if not _is_of_held_model(hub, info):
        return item | {"words": "" if version else _elsewhere(info)}
    if version:
        return item | {"is_offered": status.kind is None}
    return item | {
        "words": status.sentence or BY_ITSELF,
        "is_offered": status.kind is None,
        "is_pending": True,
    }


def _is_of_held_model(hub: Hub, info: RunInfo) -> bool:
    ready = hub.engine_status().ready
    return ready is not None and ready.device == info.device


def _elsewhere(info: RunInfo) -> str:
    return (
        f"No roofs for {info.device.dtype} on {info.device.name} yet: they are measured once a "
        "model is loaded in that format there and the engine is idle."
    )
