"""The live route over ASGI: who may watch, what is sent, and what an acknowledgement is for."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from inference.process.messages import RunEnded
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.records.telemetry import TelemetrySample
from tests.builders import byte_id
from tests.visuals.live_doubles import FROM_HERE, HubUnderTest, viewers_left
from visuals.live.live_run import LiveRun
from visuals.live.route import frame_interval_s, live_routes

POLICY_VIOLATION = 1008
UNACCEPTABLE_DATA = 1003
SLOW_VIEWERS = 8  # more than asyncio's own threads on two cores
PROMPT = "hello"
STEP, TOKEN_ID = 1, 2  # places in an output token's list


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest()


@pytest.fixture
def client(under_test: HubUnderTest) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=live_routes(under_test.hub)), headers=FROM_HERE
    ) as test_client:
        yield test_client


def frames_until_closed(socket: WebSocketTestSession) -> list[dict[str, Any]]:
    """Take and acknowledge frames until the server closes."""
    frames: list[dict[str, Any]] = []
    while True:
        try:
            frames.append(json.loads(socket.receive_text()))
        except WebSocketDisconnect:
            return frames
        socket.send_text("a")


def test_a_finished_run_is_sent_whole_and_the_socket_closes(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin(PROMPT)
    under_test.step(run, 0, "o")
    under_test.step(run, 1, "k")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}") as socket:
        frames = frames_until_closed(socket)

    assert frames[-1]["run"]["state"] == "done"
    assert frames[-1]["to"] == frames[-1]["total"] == len(PROMPT) + 2
    outputs = [item[TOKEN_ID] for frame in frames for item in frame.get("outputs", ())]
    assert outputs == [byte_id("o"), byte_id("k")]


def test_nothing_more_is_sent_before_the_frame_is_acknowledged(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin(PROMPT)
    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}") as socket:
        first = json.loads(socket.receive_text())
        for index, letter in enumerate("abcdef"):
            under_test.step(run, index, letter)
        socket.send_text("a")
        second = json.loads(socket.receive_text())
        socket.send_text("a")
        under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
        frames_until_closed(socket)

    assert first["total"] == len(PROMPT)
    assert second["to"] - second["from"] == 6


def test_reconnecting_with_from_sends_only_what_was_not_seen(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin(PROMPT)
    for index, letter in enumerate("abcd"):
        under_test.step(run, index, letter)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    seen = len(PROMPT) + 3

    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}&from={seen}") as socket:
        frames = frames_until_closed(socket)

    outputs = [item[STEP] for frame in frames for item in frame.get("outputs", ())]
    assert outputs == [3]


@pytest.mark.parametrize("token", ["", "wrong", "é"], ids=["none", "wrong", "not ascii"])
def test_a_wrong_token_is_refused(under_test: HubUnderTest, client: TestClient, token: str) -> None:
    run = under_test.begin()

    with (
        pytest.raises(WebSocketDisconnect) as refusal,
        client.websocket_connect(f"/live/run/{run.run_id}?k={token}"),
    ):
        pass

    assert refusal.value.code == POLICY_VIOLATION
    assert run.viewers == 0


def test_an_unknown_run_is_refused(client: TestClient) -> None:
    with (
        pytest.raises(WebSocketDisconnect) as refusal,
        client.websocket_connect("/live/run/nothing?k=x"),
    ):
        pass

    assert refusal.value.code == POLICY_VIOLATION


@pytest.mark.parametrize(
    ("origin", "is_welcome"),
    [
        ("http://testserver", True),
        ("http://elsewhere.example", False),
        ("http://testserver.elsewhere.example", False),
        ("null", False),
    ],
)
def test_only_pages_of_this_host_may_watch(
    under_test: HubUnderTest, client: TestClient, origin: str, is_welcome: bool
) -> None:
    run = under_test.begin()
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    address = f"/live/run/{run.run_id}?k={run.token}"
    refusal = contextlib.nullcontext() if is_welcome else pytest.raises(WebSocketDisconnect)

    with refusal, client.websocket_connect(address, headers={"origin": origin}) as socket:
        frames = frames_until_closed(socket)
        assert frames[-1]["run"]["final"] is True


def test_the_right_token_alone_is_not_enough(under_test: HubUnderTest) -> None:
    run = under_test.begin()
    nobodys = TestClient(Starlette(routes=live_routes(under_test.hub)))

    with (
        pytest.raises(WebSocketDisconnect) as refusal,
        nobodys.websocket_connect(f"/live/run/{run.run_id}?k={run.token}"),
    ):
        pass

    assert refusal.value.code == POLICY_VIOLATION


def test_a_viewer_is_counted_while_the_socket_is_open(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin()
    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}") as socket:
        socket.receive_text()
        during = run.viewers
        socket.send_text("a")
        under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
        frames_until_closed(socket)

    assert (during, viewers_left(run)) == (1, 0)


@pytest.mark.parametrize("value", ["-1", "abc", "1e9", "²", "99999999999999999999"])
def test_a_cursor_that_is_no_count_does_no_harm(
    under_test: HubUnderTest, client: TestClient, value: str
) -> None:
    run = under_test.begin()
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}&from={value}") as socket:
        frames = frames_until_closed(socket)

    assert frames[-1]["run"]["final"] is True


def test_a_cursor_of_more_digits_than_python_reads_is_refused(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin()

    with (
        pytest.raises(WebSocketDisconnect) as refusal,
        client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}&from={'9' * 5000}"),
    ):
        pass

    assert refusal.value.code == POLICY_VIOLATION
    assert run.viewers == 0


def test_bytes_close_the_socket_and_the_viewer_is_counted_no_more(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin()
    with client.websocket_connect(f"/live/run/{run.run_id}?k={run.token}") as socket:
        socket.receive_text()
        socket.send_bytes(b"a")
        with pytest.raises(WebSocketDisconnect) as closing:
            socket.receive_text()

    assert closing.value.code == UNACCEPTABLE_DATA
    assert viewers_left(run) == 0


def test_frames_that_take_long_hold_up_no_other_viewer(
    under_test: HubUnderTest, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were built on the event loop, so one long frame froze every viewer."""
    slow = under_test.begin("slow")
    under_test.engine.reply(RunEnded(run_id=slow.run_id, state=RunState.DONE))
    quick = under_test.begin("quick")
    under_test.engine.reply(RunEnded(run_id=quick.run_id, state=RunState.DONE))
    go_on, snapshot = threading.Event(), under_test.hub.snapshot

    def slow_snapshot(run: LiveRun) -> RunTrace | None:
        if run is slow:
            assert go_on.wait(60)
        return snapshot(run)

    monkeypatch.setattr(under_test.hub, "snapshot", slow_snapshot)
    with contextlib.ExitStack() as viewers:
        viewers.callback(go_on.set)
        waiting = [
            viewers.enter_context(
                client.websocket_connect(f"/live/run/{slow.run_id}?k={slow.token}")
            )
            for _ in range(SLOW_VIEWERS)
        ]
        with client.websocket_connect(f"/live/run/{quick.run_id}?k={quick.token}") as socket:
            frames = frames_until_closed(socket)

        assert not go_on.is_set()
        assert frames[-1]["run"]["final"] is True
        go_on.set()
        for late in waiting:
            assert frames_until_closed(late)[-1]["to"] == len("slow")


def samples(machine: float | None, engine: float | None, count: int = 5) -> list[TelemetrySample]:
    return [
        TelemetrySample(at_s=0.1 * at, cpu_busy_ratio=machine, process_cpu_ratio=engine)
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("latest", "busy_s", "interval_s"),
    [
        (samples(1.0, 0.6), 0.0, 0.4),
        (samples(1.0, 0.97), 0.001, 0.1),
        (samples(1.0, 0.97), 0.006, 0.2),
        (samples(1.0, 0.97), 0.2, 0.4),
        (samples(0.5, 0.4), 0.2, 0.1),
        (samples(1.0, 0.6, count=3), 0.2, 0.1),
        (samples(None, None), 0.2, 0.1),
        ([], 0.2, 0.1),
    ],
    ids=[
        "starved",
        "engine has it all",
        "frames that take long",
        "frames that take very long",
        "room left",
        "too few",
        "no readings",
        "none",
    ],
)
def test_frames_come_more_seldom_only_while_processors_are_short(
    latest: list[TelemetrySample], busy_s: float, interval_s: float
) -> None:
    assert frame_interval_s(latest, busy_s) == pytest.approx(interval_s)


@pytest.mark.parametrize(
    ("viewers", "interval_s"), [(1, 0.1), (7, 0.1), (15, 0.2), (30, 0.4), (300, 0.4)]
)
def test_many_viewers_share_what_is_sent_and_each_has_two_frames_a_second(
    viewers: int, interval_s: float
) -> None:
    full, idle = samples(1.0, 0.97), samples(0.5, 0.4)

    assert frame_interval_s(full, 0.001, viewers=viewers) == pytest.approx(interval_s)
    assert frame_interval_s(idle, 0.001, viewers=viewers) == pytest.approx(0.1)
    assert interval_s < 0.5
