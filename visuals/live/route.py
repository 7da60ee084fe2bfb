"""The live route: one WebSocket a viewer, ten frames a second at most, one frame in flight.

The viewer must know the run's token and come from this very host. It gets what it has not seen,
draws it and acknowledges; a slow viewer gets fewer, larger frames and never a queue.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from urllib.parse import urlparse

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.frames import frame
from visuals.live.hub import Hub, LiveRun
from visuals.live.vega import bundle

FRAME_INTERVAL_S = 0.1
ACKNOWLEDGE_TIMEOUT_S = 60.0  # a hidden tab's timers may sleep for a minute
KEEP_ALIVE_S = 5.0
REFUSED = 1008


def live_routes(hub: Hub) -> list[Route | WebSocketRoute]:
    """Return the routes of the live panel over this hub."""

    async def watch(socket: WebSocket) -> None:
        run = hub.find(socket.path_params["run_id"])
        if run is None or not _may_watch(socket, run):
            await socket.close(REFUSED)
            return
        await socket.accept()
        hub.watch(run)
        try:
            await _stream(socket, hub, run)
        except (WebSocketDisconnect, TimeoutError):
            return  # the viewer is gone; the grace time begins
        finally:
            hub.leave(run)

    return [Route("/live/vega.js", _vega), WebSocketRoute("/live/run/{run_id}", watch)]


async def _vega(_request: Request) -> Response:
    script = await asyncio.to_thread(bundle)
    return Response(
        script, media_type="text/javascript", headers={"cache-control": "public, max-age=86400"}
    )


async def _stream(socket: WebSocket, hub: Hub, run: LiveRun) -> None:
    """Send frames until the run is final and all of it was sent."""
    cursor, sent, sent_s = _cursor(socket), "", 0.0
    while True:
        started_s = time.monotonic()
        status = hub.status(run)
        update = frame(hub.snapshot(run), status, cursor)
        text = json.dumps(update, allow_nan=False)
        # An unchanged frame now and then asks whether the viewer is still there.
        if text != sent or started_s - sent_s > KEEP_ALIVE_S:
            await socket.send_text(text)
            await asyncio.wait_for(socket.receive_text(), ACKNOWLEDGE_TIMEOUT_S)
            sent, sent_s, cursor = text, started_s, int(str(update["to"]))
        if status.state.is_final and update["to"] == update["total"]:
            await socket.close()
            return
        if update["to"] == update["total"]:
            await asyncio.sleep(max(0.0, FRAME_INTERVAL_S - (time.monotonic() - started_s)))


def _cursor(socket: WebSocket) -> int:
    """Return how much the viewer has seen; 0 for anything that is not a count."""
    value = socket.query_params.get("from", "0")
    return int(value) if value.isascii() and value.isdigit() else 0


def _may_watch(socket: WebSocket, run: LiveRun) -> bool:
    """Tell whether the token is right and the page that asks is ours."""
    token = socket.query_params.get("k", "")
    if not hmac.compare_digest(token.encode(), run.token.encode()):
        return False
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")
