"""The route by which an open tab notices what nobody asked for: that the server or the engine died.

It is a WebSocket that says which server this is, and what happened to the engine when something
did, and else nothing; that it closes is news too. What it says is no secret and opens nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from functools import cache

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.hub import Hub
from visuals.live.viewers import REFUSED, NotTextError, is_from_here, next_text

SERVER_PATH = "live/server"  # below the server's address
ASKED_EVERY_S = 1.0


@cache
def server_id() -> str:
    """Return what tells this start of the server from any other."""
    return secrets.token_urlsafe(9)


def server_routes(hub: Hub) -> list[WebSocketRoute]:
    """Return the route that says which server this is, over this hub."""

    async def say(socket: WebSocket) -> None:
        if not is_from_here(socket):
            await socket.close(REFUSED)
            return
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect, NotTextError):
            await _say_news(socket, hub)

    return [WebSocketRoute(f"/{SERVER_PATH}", say)]


def server_item(hub: Hub) -> dict[str, str]:
    """Return which server this is, and what happened to its engine."""
    return {"server": server_id(), "engine": hub.engine_words()}


async def _say_news(socket: WebSocket, hub: Hub) -> None:
    """Say what is new until the tab is gone; it may say something, which changes nothing."""
    said: dict[str, str] | None = None
    listening = asyncio.ensure_future(next_text(socket))
    try:
        while True:
            item = server_item(hub)
            if item != said:
                await socket.send_text(json.dumps(item))
                said = item
            done, _ = await asyncio.wait({listening}, timeout=ASKED_EVERY_S)
            if done:
                listening.result()
                listening = asyncio.ensure_future(next_text(socket))
    finally:
        listening.cancel()
