"""The route that says which server this is, and what happened to its engine."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from inference.process.messages import EngineDied
from tests.visuals.live_doubles import FROM_HERE, HubUnderTest
from visuals.live.server_route import SERVER_PATH, server_id, server_routes


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest()


def client(under_test: HubUnderTest, headers: dict[str, str] | None = None) -> TestClient:
    app = Starlette(routes=server_routes(under_test.hub))
    return TestClient(app, headers=FROM_HERE if headers is None else headers)


def test_a_tab_hears_which_server_this_is(under_test: HubUnderTest) -> None:
    with client(under_test).websocket_connect(f"/{SERVER_PATH}") as socket:
        said = json.loads(socket.receive_text())
        socket.send_text("anything")

    assert said == {"server": server_id(), "engine": ""}


def test_a_tab_hears_of_an_engine_that_died(under_test: HubUnderTest) -> None:
    under_test.load()
    with client(under_test).websocket_connect(f"/{SERVER_PATH}") as socket:
        socket.receive_text()

        under_test.engine.reply(EngineDied(exit_code=-9))
        said = json.loads(socket.receive_text())

    assert said["engine"].startswith("The engine process ended unexpectedly while it was idle")


def test_bytes_end_the_socket_and_nothing_else(under_test: HubUnderTest) -> None:
    tabs = client(under_test)
    with tabs.websocket_connect(f"/{SERVER_PATH}") as socket:
        socket.receive_text()
        socket.send_bytes(b"\x00")

    with tabs.websocket_connect(f"/{SERVER_PATH}") as socket:
        assert json.loads(socket.receive_text())["server"] == server_id()


@pytest.mark.parametrize("headers", [{}, {"origin": "http://elsewhere.example"}])
def test_pages_of_other_hosts_hear_nothing(
    under_test: HubUnderTest, headers: dict[str, str]
) -> None:
    tabs = client(under_test, headers)

    with pytest.raises(WebSocketDisconnect), tabs.websocket_connect(f"/{SERVER_PATH}"):
        pass
