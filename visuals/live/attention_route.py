"""The route of the attention weights: a WebSocket of its own, open while they are shown.

One message is in flight at a time. The viewer says ``a`` when it has drawn it, and may at any time
ask for another layer or head, or for the exact weights of one query.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from visuals.live.access import may_operate
from visuals.live.attention_feed import Feed, choice_from, exact_map, whole
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.viewers import (
    ACKNOWLEDGE_TIMEOUT_S,
    FRAME_INTERVAL_S,
    is_viewers,
    next_text,
    off_the_loop,
    serve_viewer,
)

MAX_REQUEST_CHARACTERS = 500


def attention_routes(hub: Hub) -> list[WebSocketRoute]:
    """Return the route of the attention weights over this hub."""

    async def attend(socket: WebSocket) -> None:
        await serve_viewer(socket, hub, _stream)

    return [WebSocketRoute("/live/attention/{run_id}", attend)]


async def _stream(socket: WebSocket, hub: Hub, run: LiveRun) -> None:
    """Send what is new whenever the viewer has drawn what came before."""
    feed = Feed()
    sent_s: float | None = None
    message = asyncio.ensure_future(next_text(socket))
    try:
        while True:
            if sent_s is None:
                update = await off_the_loop(lambda: feed.next(hub.attention(run)))
                if update is not None:
                    await socket.send_bytes(update)
                    sent_s = time.monotonic()
            await asyncio.wait({message}, timeout=FRAME_INTERVAL_S)
            if message.done():
                text = message.result()
                message = asyncio.ensure_future(next_text(socket))
                if text == "a":
                    sent_s = None
                elif may_operate(socket.scope) and not is_viewers(socket):
                    await off_the_loop(partial(obey, text, hub, run, feed))
            elif sent_s is not None and time.monotonic() - sent_s > ACKNOWLEDGE_TIMEOUT_S:
                raise TimeoutError
    finally:
        message.cancel()


def obey(text: str, hub: Hub, run: LiveRun, feed: Feed) -> None:
    """Carry out what a viewer asks for; what cannot be understood asks for nothing."""
    try:
        asked = json.loads(text[:MAX_REQUEST_CHARACTERS])
    except ValueError:
        return
    if not isinstance(asked, dict):
        return
    choice = choice_from(asked.get("capture"))
    if choice is not None:
        hub.capture(run, choice)
    query = whole(asked.get("query"))
    if query is not None:
        captured = hub.attention(run)
        feed.ask(query, whole(asked.get("head")))
        if exact_map(captured, query) is None and captured.choice is not None:
            hub.capture(run, captured.choice, query)
