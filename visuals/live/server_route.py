"""The route by which an open tab notices that the server went away, or was started anew.

It is a WebSocket that says which server this is and then nothing, so it costs nothing while all is
well; that it closes is the news. What it says is no secret and opens nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from functools import cache

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.viewers import REFUSED, NotTextError, is_from_here, next_text

SERVER_PATH = "live/server"  # below the server's address


@cache
def server_id() -> str:
    """Return what tells this start of the server from any other."""
    return secrets.token_urlsafe(9)


def server_routes() -> list[WebSocketRoute]:
    """Return the route that says which server this is."""
    return [WebSocketRoute(f"/{SERVER_PATH}", _say)]


async def _say(socket: WebSocket) -> None:
    if not is_from_here(socket):
        await socket.close(REFUSED)
        return
    await socket.accept()
    await socket.send_text(server_id())
    with contextlib.suppress(WebSocketDisconnect, NotTextError):
        while True:
            await next_text(socket)
