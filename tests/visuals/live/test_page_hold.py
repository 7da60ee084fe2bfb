"""A run that is held until its pages are drawn: who is waited for, who is not, and what is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from inference.process.messages import Action, Control, RunEnded, RunStarted, StateChanged
from inference.records.status import RunState
from tests.builders import order, run_info
from tests.visuals.live_doubles import FROM_HERE, PATIENCE_S, HubUnderTest
from visuals.live.live_run import LiveRun
from visuals.live.route import drawing_s, frame_interval_s, live_routes


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest(hold_s=1.0)


@pytest.fixture
def client(under_test: HubUnderTest) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=live_routes(under_test.hub)), headers=FROM_HERE
    ) as test_client:
        yield test_client


def begins(under_test: HubUnderTest, run: LiveRun) -> int:
    """Return how often the engine was told to begin this run."""
    return under_test.engine.commands.count(Control(run_id=run.run_id, action=Action.BEGIN))


def wait_for(is_so: Callable[[], bool]) -> None:
    """Return once it is so: what a viewer says is taken on a thread."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def address(run: LiveRun) -> str:
    return f"/live/run/{run.run_id}?k={run.token}"


def test_the_engine_is_told_how_long_to_hold_a_run(under_test: HubUnderTest) -> None:
    under_test.begin()

    assert [generate.hold_s for generate in under_test.generates()] == [1.0]


def test_a_run_that_starts_paused_is_not_held(under_test: HubUnderTest) -> None:
    under_test.hub.submit(replace(order("hello"), is_paused=True))
    first = under_test.hub.runs()[0]
    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.STOPPED))

    assert all(generate.hold_s == 0 for generate in under_test.generates())
    assert not first.hold.is_on


def test_a_run_begins_once_every_page_that_follows_it_is_quiet(under_test: HubUnderTest) -> None:
    run, hub = under_test.begin(), under_test.hub
    hub.page_opened(run)
    hub.page_opened(run)

    hub.page_is_quiet(run)
    assert (begins(under_test, run), hub.status(run).is_held) == (0, True)
    hub.page_is_quiet(run)

    assert (begins(under_test, run), hub.status(run).is_held) == (1, False)


def test_a_page_that_leaves_is_not_waited_for(under_test: HubUnderTest) -> None:
    run, hub = under_test.begin(), under_test.hub
    hub.page_opened(run)
    hub.page_opened(run)
    hub.page_is_quiet(run)

    hub.page_left(run)

    assert begins(under_test, run) == 1


def test_a_run_without_a_page_is_left_to_the_engines_limit(under_test: HubUnderTest) -> None:
    run, hub = under_test.begin(), under_test.hub
    hub.page_opened(run)

    hub.page_left(run)

    assert begins(under_test, run) == 0
    assert hub.status(run).is_held
    under_test.engine.reply(StateChanged(run_id=run.run_id, state=RunState.RUNNING))
    assert not hub.status(run).is_held


def test_a_page_that_was_quiet_while_the_run_waited_for_another_lets_it_begin(
    under_test: HubUnderTest,
) -> None:
    """It has to draw the run's prompt too, so its word counts only from when that is there."""
    first, hub = under_test.begin(), under_test.hub
    second = hub.submit(order("b"))
    hub.page_opened(second)
    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))
    assert not hub.status(second).is_held
    under_test.engine.reply(RunStarted(info=run_info(second.run_id)))
    assert hub.status(second).is_held

    hub.page_is_quiet(second)

    assert begins(under_test, second) == 1


def test_to_acknowledge_a_frame_of_a_held_run_lets_it_begin(
    under_test: HubUnderTest, client: TestClient
) -> None:
    run = under_test.begin()
    with client.websocket_connect(address(run)) as socket:
        first = json.loads(socket.receive_text())
        assert begins(under_test, run) == 0
        socket.send_text("a 12.5")
        wait_for(lambda: begins(under_test, run) == 1)
        under_test.engine.reply(StateChanged(run_id=run.run_id, state=RunState.RUNNING))
        under_test.step(run, 0, "o")
        second = json.loads(socket.receive_text())
        socket.send_text("a")

    assert first["run"]["held"] is True
    assert first["to"] == first["total"] == len("hello")
    assert (second["run"]["held"], second["step"]["index"]) == (False, 0)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("a", 0.0),
        ("a 12.5", 0.0125),
        ("a -3", 0.0),
        ("a nan", 0.0),
        ("a 1e99", 0.0),
        ("a x", 0.0),
        ("", 0.0),
    ],
)
def test_a_viewer_may_say_how_long_it_drew(said: str, seconds: float) -> None:
    assert drawing_s(said) == seconds


def test_a_viewer_that_draws_slowly_gets_fewer_frames() -> None:
    assert [frame_interval_s((), drawing_s=seconds) for seconds in (0.0, 0.05, 60.0)] == [
        0.1,
        0.2,
        2.0,
    ]
