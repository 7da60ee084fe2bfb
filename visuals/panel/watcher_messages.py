"""What the page of somebody who may only watch can say to Streamlit: to be drawn, and nothing else.

Streamlit takes more from any page: to empty its caches, which are everybody's, to write down what
was dismissed, to make files for downloads. A watcher's page never asks for that.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from visuals.live.access import may_operate

TO_BE_DRAWN = ("rerun_script", "stop_script", "app_heartbeat")
MOST_BYTES = 1_000_000  # a page without widgets says a few hundred


class WatcherMessages:
    """Lets through what a watcher's page says, and drops what it does not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "websocket" or may_operate(scope):
            await self._app(scope, receive, send)
            return

        async def receive_harmless() -> Message:
            while True:
                message = await receive()
                content = message.get("bytes")
                if content is None or _is_to_be_drawn(content):
                    return message

        await self._app(scope, receive_harmless, send)


def _is_to_be_drawn(content: bytes) -> bool:
    if len(content) > MOST_BYTES:
        return False
    try:
        return BackMsg.FromString(content).WhichOneof("type") in TO_BE_DRAWN
    except DecodeError:
        return False
