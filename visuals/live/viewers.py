"""A viewer's WebSocket, whatever is sent over it: who may watch, and work off the event loop.

The token keeps out pages of other sites and viewers without this app's page. It is no access
control between users: whoever can load the pages is given it for any run on their lists.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.guards import is_own_page
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

FRAME_INTERVAL_S = 0.1
ACKNOWLEDGE_TIMEOUT_S = 60.0  # a hidden tab's timers may sleep for a minute
REFUSED = 1008  # policy violation, RFC 6455 section 7.4.1
NOT_TEXT = 1003  # unacceptable kind of data, likewise
BUILDERS = 32  # frames that are built at the same time; one viewer has one at most

T = TypeVar("T")

Stream = Callable[[WebSocket, Hub, LiveRun], Awaitable[None]]

# Threads of their own: asyncio's default ones serve others, and are as few as six on two cores.
_builders = ThreadPoolExecutor(BUILDERS, thread_name_prefix="live-frames")


class NotTextError(Exception):
    """A viewer sent bytes, and viewers say everything in text."""


async def off_the_loop(work: Callable[[], T]) -> T:
    """Return what the work returns; it may take the hub's lock and compute for a while."""
    return await asyncio.get_running_loop().run_in_executor(_builders, work)


async def serve_viewer(socket: WebSocket, hub: Hub, stream: Stream) -> None:
    """Stream a run to a viewer who may watch it, and count the viewer meanwhile."""
    run = hub.find(socket.path_params["run_id"])
    if run is None or not may_watch(socket, run):
        await socket.close(REFUSED)
        return
    await socket.accept()
    await off_the_loop(partial(hub.watch, run))
    try:
        await stream(socket, hub, run)
    except NotTextError:
        await socket.close(NOT_TEXT)
    except (WebSocketDisconnect, TimeoutError):
        return  # the viewer is gone; the grace time begins
    finally:
        await asyncio.shield(off_the_loop(partial(hub.leave, run)))


async def next_text(socket: WebSocket) -> str:
    """Return the next message of a viewer.

    Raises:
        WebSocketDisconnect: The viewer is gone.
        NotTextError: The message is bytes.
    """
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000), message.get("reason"))
    text: str | None = message.get("text")
    if text is None:
        raise NotTextError
    return text


def may_watch(socket: WebSocket, run: LiveRun) -> bool:
    """Tell whether the token is right and the page that asks is ours."""
    return has_token(run, socket.query_params.get("k", "")) and is_from_here(socket)


def has_token(run: LiveRun, token: str) -> bool:
    """Tell whether this is the run's token; takes as long for any."""
    return hmac.compare_digest(token.encode("utf-8", "replace"), run.token.encode())


def is_viewers(socket: WebSocket) -> bool:
    """Tell whether the page was opened by a viewers' link, and so steers nothing."""
    return socket.query_params.get("as") == "viewer"


def is_from_here(socket: WebSocket) -> bool:
    """Tell whether a page of this very host asks; other programs do not say so."""
    return is_own_page(socket.headers.get("origin"), socket.headers.get("host"))
