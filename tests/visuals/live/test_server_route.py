"""The route that says which server this is."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.visuals.live_doubles import FROM_HERE
from visuals.live.server_route import SERVER_PATH, server_id, server_routes


def test_a_tab_hears_which_server_this_is_and_nothing_else() -> None:
    client = TestClient(Starlette(routes=server_routes()), headers=FROM_HERE)

    with client.websocket_connect(f"/{SERVER_PATH}") as socket:
        said = socket.receive_text()
        socket.send_text("anything")

    assert said == server_id()


def test_bytes_end_the_socket_and_nothing_else() -> None:
    client = TestClient(Starlette(routes=server_routes()), headers=FROM_HERE)

    with client.websocket_connect(f"/{SERVER_PATH}") as socket:
        socket.receive_text()
        socket.send_bytes(b"\x00")

    with client.websocket_connect(f"/{SERVER_PATH}") as socket:
        assert socket.receive_text() == server_id()


@pytest.mark.parametrize("origin", [{}, {"origin": "http://elsewhere.example"}])
def test_pages_of_other_hosts_hear_nothing(origin: dict[str, str]) -> None:
    client = TestClient(Starlette(routes=server_routes()), headers=origin)

    with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"/{SERVER_PATH}"):
        pass
