"""The route of presenter mode over ASGI: what pages are sent, and who may say what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from inference.process.messages import RunEnded
from inference.records.status import RunState
from tests.visuals.live_doubles import FROM_HERE, HubUnderTest
from visuals.live import present_route
from visuals.live.access import ROLE, Role
from visuals.live.live_run import LiveRun
from visuals.live.present_route import MAX_CHARACTERS, PRESENT_PATH, pointer_from, present_routes
from visuals.live.presenting import Pointer, Presenting
from visuals.words.presenter import ONLY_FOLLOWING, RUN_NOT_HERE, TAKEN_OVER

PRESENTER = f"/{PRESENT_PATH}?as=presenter"
VIEWER = f"/{PRESENT_PATH}?as=viewer"
NOBODY = {"presents": False}


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest()


@pytest.fixture
def presenting(under_test: HubUnderTest) -> Presenting:
    return Presenting(under_test.hub)


@pytest.fixture
def client(presenting: Presenting) -> Iterator[TestClient]:
    app = Starlette(routes=present_routes(presenting))
    with TestClient(app, headers=FROM_HERE) as test_client:
        yield test_client


@pytest.fixture
def run(under_test: HubUnderTest) -> LiveRun:
    run = under_test.begin()
    for index, letter in enumerate("abc"):
        under_test.step(run, index, letter)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    return run


def said(socket: WebSocketTestSession) -> dict[str, Any]:
    return json.loads(socket.receive_text())


def said_when(socket: WebSocketTestSession, **expected: object) -> dict[str, Any]:
    """Return the first message that has these values; of quick changes only the newest is sent."""
    while True:
        message = said(socket)
        if expected.items() <= message.items():
            return message


def taken(run: LiveRun, **more: object) -> str:
    return json.dumps({"do": "take", "run_id": run.run_id, "token": run.token, **more})


def test_viewers_are_sent_what_the_presenter_shows(client: TestClient, run: LiveRun) -> None:
    with client.websocket_connect(VIEWER) as viewer, client.websocket_connect(PRESENTER) as socket:
        assert said(viewer) == said(socket) == NOBODY
        socket.send_text(taken(run, panels=["kv"], dark=True))
        own = said(socket)
        first = said(viewer)
        socket.send_text(json.dumps({"do": "show", "panels": ["mask", "tokens"]}))
        said_when(viewer, panels=["mask", "tokens"])
        socket.send_text(json.dumps({"do": "point", "pointer": ["mask", 0.25, 1]}))
        pointed = said_when(viewer, pointer=["mask", 0.25, 1.0])
        socket.send_text(json.dumps({"do": "back"}))
        earlier = said_when(viewer, pointer=["mask", 0.25, 1.0])
        socket.send_text(json.dumps({"do": "leave"}))
        last = said(viewer)

    assert own == {**first, "holds": True}
    assert first == {
        "presents": True,
        "holds": False,
        "run": {"run_id": run.run_id, "token": run.token},
        "panels": ["kv"],
        "dark": True,
        "pointer": None,
    }
    assert pointed["run"]["run_id"] == run.run_id
    assert earlier["run"]["run_id"].startswith("replay-")
    assert last == NOBODY


def test_who_comes_later_is_sent_what_is_shown_at_that_moment(
    client: TestClient, run: LiveRun
) -> None:
    with client.websocket_connect(PRESENTER) as socket:
        said(socket)
        socket.send_text(taken(run))
        said_when(socket, presents=True)
        with client.websocket_connect(VIEWER) as viewer:
            assert said(viewer)["run"]["run_id"] == run.run_id


@pytest.mark.parametrize("asked", [{"do": "step"}, {"do": "show", "panels": ["kv"]}, {}])
def test_a_viewer_is_refused_in_a_sentence(
    client: TestClient, run: LiveRun, presenting: Presenting, asked: dict[str, object]
) -> None:
    with client.websocket_connect(PRESENTER) as socket, client.websocket_connect(VIEWER) as viewer:
        socket.send_text(taken(run))
        said_when(viewer, presents=True)
        before = presenting.current

        viewer.send_text(json.dumps(asked))
        assert said(viewer) == {"says": ONLY_FOLLOWING}
        viewer.send_text(taken(run))
        assert said(viewer) == {"says": ONLY_FOLLOWING}

        assert presenting.current is before


def test_a_watchers_key_is_a_viewers_whatever_the_page_says(
    presenting: Presenting, run: LiveRun
) -> None:
    inner = Starlette(routes=present_routes(presenting))

    def watching(app: ASGIApp) -> ASGIApp:
        async def as_watcher(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, ROLE: Role.WATCH}, receive, send)

        return as_watcher

    client = TestClient(watching(inner), headers=FROM_HERE)
    with client.websocket_connect(PRESENTER) as socket:
        assert said(socket) == NOBODY
        socket.send_text(taken(run))
        assert said(socket) == {"says": ONLY_FOLLOWING}

    assert presenting.current is None


def test_the_newest_presenter_holds_and_the_other_is_told(client: TestClient, run: LiveRun) -> None:
    with (
        client.websocket_connect(PRESENTER) as first,
        client.websocket_connect(PRESENTER) as second,
    ):
        first.send_text(taken(run))
        said_when(first, holds=True)
        second.send_text(taken(run))
        said_when(second, holds=True)

        assert said(first) == {"says": TAKEN_OVER}
        assert said(first)["holds"] is False
        first.send_text(json.dumps({"do": "step"}))
        assert said(first) == {"says": TAKEN_OVER}


def test_a_presenter_whose_page_is_gone_has_a_moment_to_come_back(
    client: TestClient, run: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(present_route, "AWAY_S", 0.2)
    with client.websocket_connect(VIEWER) as viewer:
        said(viewer)
        with client.websocket_connect(PRESENTER) as socket:
            socket.send_text(taken(run, panels=["kv"]))
            said_when(socket, holds=True)
        assert said(viewer)["presents"] is True
        with client.websocket_connect(PRESENTER) as again:
            again.send_text(taken(run))
            said_when(again, holds=True, panels=["kv"])
        assert said(viewer) == NOBODY


@pytest.mark.parametrize(
    "named", [{"run_id": "gone", "token": "x"}, {"run_id": "own", "token": "wrong"}, {"run_id": 7}]
)
def test_a_run_that_is_not_here_or_not_the_pages_own_is_not_presented(
    client: TestClient, run: LiveRun, presenting: Presenting, named: dict[str, object]
) -> None:
    if named["run_id"] == "own":
        named = {**named, "run_id": run.run_id}
    with client.websocket_connect(PRESENTER) as socket:
        said(socket)
        socket.send_text(json.dumps({"do": "take", **named}))
        assert said(socket) == {"says": RUN_NOT_HERE}

    assert presenting.current is None


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[1]", '"take"', '{"do": 7}', '{"do": "x' + "y" * MAX_CHARACTERS]
)
def test_what_cannot_be_understood_does_no_harm(
    client: TestClient, run: LiveRun, text: str
) -> None:
    with client.websocket_connect(PRESENTER) as socket:
        said(socket)
        socket.send_text(text)
        socket.send_text(taken(run))
        assert said(socket)["holds"] is True


def test_a_page_of_another_site_is_sent_nothing(client: TestClient) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(PRESENTER, headers={"origin": "http://elsewhere.example"}),
    ):
        pass


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (["kv", 0, 1], Pointer(panel="kv", x=0.0, y=1.0)),
        (["kv", 0.5, 1.5], None),
        (["kv", -1, 0], None),
        (["kv", float("nan"), 0], None),
        (["kv", 10**400, 0], None),
        (["kv", "0", 0], None),
        (["kv", 0], None),
        (["no-such", 0, 0], None),
        ([[], 0, 0], None),
        (None, None),
        ("kv", None),
    ],
)
def test_a_pointer_is_a_known_panel_and_two_shares(value: object, pointer: Pointer | None) -> None:
    assert pointer_from(value) == pointer
