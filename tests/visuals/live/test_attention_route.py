"""The route of the attention weights over ASGI: who may, one message in flight, what is asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from inference.process.messages import CaptureAttention
from inference.records.attention import AttentionChoice
from tests.visuals.live_doubles import FIRST, FROM_HERE, CapturedHub, taken_apart, viewers_left
from tests.visuals.traces import trace_of
from visuals.live.access import AccessGate, AccessKeys
from visuals.live.attention_feed import Captured
from visuals.live.attention_route import attention_routes
from visuals.live.live_run import LiveRun


@pytest.fixture
def under_test() -> CapturedHub:
    return CapturedHub()


@pytest.fixture
def client(under_test: CapturedHub) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=attention_routes(under_test.hub)), headers=FROM_HERE
    ) as test_client:
        yield test_client


def test_maps_come_one_message_at_a_time(under_test: CapturedHub, client: TestClient) -> None:
    run = under_test.begin_captured()
    under_test.attended(run, FIRST)

    with client.websocket_connect(f"/live/attention/{run.run_id}?k={run.token}") as socket:
        state = taken_apart(socket.receive_bytes())
        socket.send_text("a")
        blocks = taken_apart(socket.receive_bytes())
        under_test.attended(run, FIRST, 1)
        socket.send_text("a")
        following = taken_apart(socket.receive_bytes())

    assert state.header["kind"] == "state"
    assert blocks.header["blocks"][0]["qn"] == 5
    assert following.header["blocks"][0]["step"] == 1


def test_another_layer_and_an_exact_query_reach_the_engine(
    under_test: CapturedHub, client: TestClient
) -> None:
    run = under_test.begin_captured()
    other = AttentionChoice(layer=0, head=1)

    with client.websocket_connect(f"/live/attention/{run.run_id}?k={run.token}") as socket:
        socket.receive_bytes()
        socket.send_text('{"capture": {"layer": 0, "head": 1, "all": false}}')
        socket.send_text('{"query": 3, "head": 1}')
        socket.send_text("a")
        state = taken_apart(socket.receive_bytes())

    assert state.header["choice"] == {"layer": 0, "head": 1, "all": False, "row": 0}
    assert under_test.captures() == [
        CaptureAttention(run_id=run.run_id, choice=other),
        CaptureAttention(run_id=run.run_id, choice=other, query=3),
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"capture": 3}', '{"query": -1}', "x" * 100_000])
def test_what_cannot_be_understood_asks_for_nothing(
    under_test: CapturedHub, client: TestClient, text: str
) -> None:
    run = under_test.begin_captured()

    with client.websocket_connect(f"/live/attention/{run.run_id}?k={run.token}") as socket:
        socket.receive_bytes()
        socket.send_text(text)
        socket.send_text("a")
        under_test.attended(run, FIRST)
        message = taken_apart(socket.receive_bytes())

    assert message.header["kind"] == "blocks"
    assert under_test.captures() == []


def test_a_wrong_token_is_refused(under_test: CapturedHub, client: TestClient) -> None:
    run = under_test.begin_captured()

    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"/live/attention/{run.run_id}?k=wrong"),
    ):
        pass

    assert run.viewers == 0


def test_bytes_close_the_socket(under_test: CapturedHub, client: TestClient) -> None:
    run = under_test.begin_captured()

    with client.websocket_connect(f"/live/attention/{run.run_id}?k={run.token}") as socket:
        socket.receive_bytes()
        socket.send_bytes(b"a")
        with pytest.raises(WebSocketDisconnect) as closing:
            socket.receive_bytes()

    assert closing.value.code == 1003
    assert viewers_left(run) == 0


def test_a_message_that_takes_long_holds_up_no_other_viewer(
    under_test: CapturedHub, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = under_test.begin_captured()
    quick = under_test.hub.adopt(trace_of([b"a"], [b"b"]))
    go_on, attention = threading.Event(), under_test.hub.attention

    def slow_attention(run: LiveRun) -> Captured:
        if run is slow:
            assert go_on.wait(60)
        return attention(run)

    monkeypatch.setattr(under_test.hub, "attention", slow_attention)
    with contextlib.ExitStack() as viewers:
        viewers.callback(go_on.set)
        address = f"/live/attention/{slow.run_id}?k={slow.token}"
        late = viewers.enter_context(client.websocket_connect(address))
        with client.websocket_connect(f"/live/attention/{quick.run_id}?k={quick.token}") as socket:
            state = taken_apart(socket.receive_bytes())

        assert not go_on.is_set()
        assert state.header["choice"] is None
        go_on.set()
        assert taken_apart(late.receive_bytes()).header["kind"] == "state"


def test_what_a_watcher_asks_for_reaches_no_engine(under_test: CapturedHub) -> None:
    run = under_test.begin_captured()
    under_test.attended(run, FIRST)
    keys = AccessKeys("correct-horse-battery")
    app = Starlette(
        routes=attention_routes(under_test.hub), middleware=[Middleware(AccessGate, keys=keys)]
    )
    asked = len(under_test.captures())

    with TestClient(app, headers=FROM_HERE) as watcher:
        watcher.get(f"/?key={keys.watch}", follow_redirects=False)
        with watcher.websocket_connect(f"/live/attention/{run.run_id}?k={run.token}") as socket:
            socket.receive_bytes()
            socket.send_text('{"capture": {"layer": 0, "head": 1}, "query": 2}')
            socket.send_text("a")
            blocks = taken_apart(socket.receive_bytes())

    assert blocks.header["blocks"][0]["qn"] == 5
    assert len(under_test.captures()) == asked


def test_what_a_viewers_page_asks_for_reaches_no_engine_though_nobody_needs_a_key(
    under_test: CapturedHub, client: TestClient
) -> None:
    run = under_test.begin_captured()
    under_test.attended(run, FIRST)

    address = f"/live/attention/{run.run_id}?k={run.token}&as=viewer"
    with client.websocket_connect(address) as socket:
        socket.receive_bytes()
        socket.send_text('{"capture": {"layer": 0, "head": 1, "all": false}}')
        socket.send_text("a")
        assert taken_apart(socket.receive_bytes()).header["kind"] == "blocks"

    assert under_test.captures() == []
