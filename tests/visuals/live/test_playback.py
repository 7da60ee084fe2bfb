"""A run that plays again: the clock moves it, and torch is never there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inference.process.messages import Action
from inference.records.run import RunTrace
from inference.records.status import RunState
from tests.visuals.live_doubles import HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.live_run import LiveRun

TRACE = trace_of([b"a"], [b"b", b"c", b"d", b"e"], step_time_s=0.5)  # a step each half second


class Stage:
    """A hub that plays one run."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self.under_test = HubUnderTest()
        self.hub = self.under_test.hub
        self.run: LiveRun = self.hub.replay(TRACE, is_paused=is_paused)

    def after(self, seconds: float) -> int:
        """Let time pass and return how many steps are shown."""
        self.under_test.time_s += seconds
        trace = self.hub.snapshot(self.run)
        assert trace is not None
        return len(trace.events)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_it_plays_at_its_own_pace_and_ends_as_the_run_it_was(stage: Stage) -> None:
    assert [stage.after(seconds) for seconds in (0.0, 0.6, 0.5, 0.1)] == [0, 1, 2, 2]
    assert stage.hub.status(stage.run).state is RunState.RUNNING

    assert stage.after(10) == 4

    assert stage.hub.status(stage.run).state is TRACE.state
    assert stage.hub.snapshot(stage.run) == TRACE


def test_it_plays_faster_and_slower_from_where_it_stands(stage: Stage) -> None:
    stage.after(0.5)
    stage.hub.change_speed(stage.run, 4.0)
    assert stage.after(0.125) == 2

    stage.hub.change_speed(stage.run, 0.5)

    assert stage.after(0.9) == 2
    assert stage.after(0.2) == 3


def test_pausing_holds_it_and_stepping_shows_one_step_more(stage: Stage) -> None:
    stage.after(0.6)
    stage.hub.control(stage.run, Action.PAUSE)
    assert stage.after(60) == 1
    assert stage.run.state is RunState.PAUSED

    stage.hub.control(stage.run, Action.STEP)
    assert stage.after(60) == 2

    stage.hub.control(stage.run, Action.RESUME)
    assert stage.after(0.4) == 2
    assert stage.after(0.2) == 3


def test_a_pace_in_steps_a_second_takes_the_place_of_its_own(stage: Stage) -> None:
    stage.hub.control(stage.run, Action.PACE, 10.0)
    assert stage.after(0.21) == 2

    stage.hub.control(stage.run, Action.PACE, None)

    assert stage.after(0.4) == 2
    assert stage.after(0.2) == 3


def test_it_can_be_stopped_where_it_stands(stage: Stage) -> None:
    stage.after(0.6)
    stage.hub.control(stage.run, Action.STOP)

    assert stage.after(60) == 1
    assert stage.run.state is RunState.STOPPED


def test_stepping_to_the_end_ends_it() -> None:
    stage = Stage(is_paused=True)
    for _ in range(4):
        stage.hub.control(stage.run, Action.STEP)

    assert stage.run.state is TRACE.state
    assert stage.under_test.engine.commands == []


def test_an_empty_run_is_over_at_once(stage: Stage) -> None:
    empty: RunTrace = trace_of([b"a"], [])

    run = stage.hub.replay(empty)

    assert stage.hub.snapshot(run) == empty
    assert run.state.is_final


def test_replaying_needs_no_torch() -> None:
    script = (
        "import sys\n"
        "from tests.visuals.traces import trace_of\n"
        "from inference.runs.run_file import read_bytes, to_json\n"
        "from visuals.live.frames import frame\n"
        "from visuals.live.hub import Hub\n"
        "class NoEngine:\n"
        "    def __init__(self, on_reply): pass\n"
        "    def send(self, command): raise AssertionError\n"
        "    def retire(self): raise AssertionError\n"
        "hub = Hub(NoEngine)\n"
        "[trace] = read_bytes(to_json(trace_of([b'a'], [b'b', b'c'])).encode())\n"
        "run = hub.replay(trace, speed=1000.0)\n"
        "while not run.state.is_final:\n"
        "    frame(hub.snapshot(run), hub.status(run), 0)\n"
        "assert hub.snapshot(run) == trace\n"
        "assert 'torch' not in sys.modules\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )

    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("steps", "shown"), [(0, 0), (3, 3), (4, 4), (9, 4), (-1, 0)])
def test_it_can_begin_after_any_step(steps: int, shown: int) -> None:
    hub = HubUnderTest().hub

    run = hub.replay(TRACE, is_paused=True, steps=steps)

    trace = hub.snapshot(run)
    assert trace is not None
    assert trace.events == TRACE.events[:shown]
    assert (hub.status(run).state is TRACE.state) == (shown == len(TRACE.events))


def test_it_goes_on_from_the_step_it_began_after() -> None:
    stage = Stage()
    stage.run = stage.hub.replay(TRACE, is_paused=True, steps=2)
    assert stage.after(5) == 2

    stage.hub.control(stage.run, Action.STEP)
    assert stage.after(5) == 3

    stage.hub.control(stage.run, Action.RESUME)
    assert stage.after(0.4) == 3
    assert stage.after(0.2) == 4
