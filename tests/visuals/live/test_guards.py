"""Whom the server answers, and what its pages may load."""

from __future__ import annotations

import contextlib

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.guards import MISDIRECTED, ContentPolicy, HostGuard, OriginGuard, content_policy
from visuals.live.page_addresses import SCRIPT, page_routes


async def _page(_request: object) -> PlainTextResponse:
    return PlainTextResponse("ours")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("ours")
    await socket.close()


def client(address: str = "127.0.0.1", named: tuple[str, ...] = ()) -> TestClient:
    app = Starlette(
        routes=[
            Route("/", _page, methods=["GET", "PUT", "OPTIONS"]),
            WebSocketRoute("/live", _socket),
            *page_routes(),
        ],
        middleware=[
            Middleware(HostGuard, address=address, named=named),
            Middleware(ContentPolicy),
            Middleware(OriginGuard),
        ],
    )
    return TestClient(app)


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("localhost:8501", True),
        ("LOCALHOST", True),
        ("127.0.0.1:8501", True),
        ("127.0.0.2", True),
        ("[::1]:8501", True),
        ("evil.example", False),
        ("evil.example:8501", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.1.7:8501", False),
        ("[::1", False),
        ("", False),
        # What was read as localhost, and went into the content policy as it stands:
        ("localhost/;script-src *", False),
        ("localhost/../evil.example", False),
        ("localhost?a", False),
        ("localhost#a", False),
        ("me@localhost", False),
        ("localhost:8501 evil.example", False),
        ("localhost:", False),
    ],
)
def test_a_request_is_answered_that_names_this_machine(host: str, is_known: bool) -> None:
    answer = client().get("/", headers={"host": host, "origin": f"http://{host}"})

    assert answer.status_code == (200 if is_known else MISDIRECTED)
    assert (answer.text == "ours") is is_known


@pytest.mark.parametrize(("host", "is_known"), [("localhost", True), ("evil.example", False)])
def test_a_socket_is_opened_that_names_this_machine(host: str, is_known: bool) -> None:
    refusal = contextlib.nullcontext() if is_known else pytest.raises(WebSocketDisconnect)

    with (
        refusal,
        client().websocket_connect(
            "/live", headers={"host": host, "origin": f"http://{host}"}
        ) as socket,
    ):
        assert socket.receive_text() == "ours"


OTHERS = ("http://localhost:3000", "http://127.0.0.1:8501", "https://evil.example", "null", "[")


def test_a_socket_is_opened_by_a_page_of_this_very_server_only() -> None:
    """Streamlit's own took any port of this machine, and programs that name no page at all."""
    for origin in OTHERS:
        with (
            pytest.raises(WebSocketDisconnect),
            client().websocket_connect(
                "/live", headers={"host": "localhost:8501", "origin": origin}
            ),
        ):
            pass
    with (
        pytest.raises(WebSocketDisconnect),
        client().websocket_connect("/live", headers={"host": "localhost:8501"}),
    ):
        pass


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_a_page_of_another_origin_is_answered_nothing(method: str) -> None:
    visitor = client()

    for origin in OTHERS:
        answer = visitor.request(method, "/", headers={"host": "localhost:8501", "origin": origin})
        assert answer.status_code == 403
        assert "ours" not in answer.text
        assert "access-control-allow-origin" not in answer.headers
    own = {"host": "localhost:8501", "origin": "http://localhost:8501"}
    assert visitor.request(method, "/", headers=own).text == "ours"
    assert visitor.request(method, "/", headers={"host": "localhost:8501"}).text == "ours"


def test_hosts_that_the_user_names_are_answered() -> None:
    named = client(named=(" lab.example", "10.1.2.3"))

    for host in ("lab.example:80", "10.1.2.3"):
        assert named.get("/", headers={"host": host}).status_code == 200
    refused = named.get("/", headers={"host": "other.example"})
    assert "TOKEN_BY_TOKEN_HOSTS" in refused.text


def test_a_server_that_listens_everywhere_is_reached_by_any_address_but_by_no_other_name() -> None:
    everywhere = client(address="0.0.0.0")

    assert everywhere.get("/", headers={"host": "192.168.1.7:8501"}).status_code == 200
    assert everywhere.get("/", headers={"host": "evil.example"}).status_code == MISDIRECTED


def test_pages_may_load_from_this_server_only() -> None:
    answer = client().get("/compare", headers={"host": "localhost:8501"})

    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert SCRIPT in answer.text
    assert policy["default-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["connect-src"] == "'self' ws://localhost:8501 wss://localhost:8501 blob: data:"
    assert "'unsafe-inline'" not in policy["script-src"]
    assert policy["frame-ancestors"] == "'self'"


def test_the_scripts_in_the_page_itself_are_named_by_digest() -> None:
    page = client().get("/compare", headers={"host": "localhost"}).text

    assert page.count("<script>") == content_policy("localhost").count("'sha256-")
