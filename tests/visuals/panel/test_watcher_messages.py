"""What of a watcher's messages reaches Streamlit."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg

from visuals.live.access import ROLE, Role
from visuals.panel.watcher_messages import MOST_BYTES, WatcherMessages


class As:
    """Has all requests come from somebody with a role."""

    def __init__(self, app: ASGIApp, role: Role) -> None:
        self._app, self._role = app, role

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, ROLE: self._role}, receive, send)


async def _echo(socket: WebSocket) -> None:
    await socket.accept()
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        await socket.send_bytes(message.get("bytes") or message["text"].encode())


def messages() -> dict[str, BackMsg]:
    """Return one message of each kind that Streamlit takes, by its kind."""
    made: dict[str, BackMsg] = {}
    for kind in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields:
        message = made[kind.name] = BackMsg()
        if kind.message_type is None:
            setattr(message, kind.name, True)
        else:
            getattr(message, kind.name).SetInParent()
    made["rerun_script"].rerun_script.query_string = "a=b"
    return made


def heard(role: Role, said: list[bytes]) -> list[bytes]:
    """Return what gets through of messages, with one at the end that does in any case."""
    app = Starlette(
        routes=[WebSocketRoute("/", _echo)],
        middleware=[Middleware(As, role=role), Middleware(WatcherMessages)],
    )
    got: list[bytes] = []
    with TestClient(app).websocket_connect("/") as socket:
        for one in said:
            socket.send_bytes(one)
        socket.send_text("end")
        while (answer := socket.receive_bytes()) != b"end":
            got.append(answer)
    return got


def test_a_watchers_page_is_drawn_and_nothing_else_is_done_for_it() -> None:
    """A watcher could have everybody's caches emptied."""
    made = messages()
    assert {"clear_cache", "backend_operation_request", "file_urls_request"} <= made.keys()

    through = heard(Role.WATCH, [one.SerializeToString() for one in made.values()])

    kinds = {BackMsg.FromString(one).WhichOneof("type") for one in through}
    assert kinds == {"rerun_script", "stop_script", "app_heartbeat"}
    assert made["rerun_script"].SerializeToString() in through


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"\x0a" * (MOST_BYTES + 1)])
def test_what_is_no_message_of_a_page_is_dropped(content: bytes) -> None:
    assert heard(Role.WATCH, [content]) == []


def test_an_operator_says_what_they_like() -> None:
    said = [one.SerializeToString() for one in messages().values()]

    assert heard(Role.OPERATE, said) == said
