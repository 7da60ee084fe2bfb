"""An engine that dies or freezes: started anew, said, and nothing waits for ever."""

from __future__ import annotations

import pytest

from inference.process.messages import (
    Action,
    Control,
    EngineDied,
    LoadFailed,
    MeasureCeilings,
    SweepTokens,
)
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, model_ready, order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.engine_restarts import RESTARTS, WITHIN_S
from visuals.live.stop_limit import STOP_LIMIT_S

KILLED = EngineDied(exit_code=-9)


@pytest.fixture
def held() -> HubUnderTest:
    """Return a hub whose model is loaded."""
    under_test = HubUnderTest()
    under_test.load()
    return under_test


def loads(under_test: HubUnderTest) -> int:
    return under_test.engine.commands.count(DEFAULT_LOAD)


def test_an_engine_that_dies_while_idle_is_started_anew_with_its_model(held: HubUnderTest) -> None:
    held.engine.reply(KILLED)

    assert loads(held) == 2
    assert held.hub.engine_status().stage is not None
    assert "while it was idle (exit code -9" in held.hub.engine_words()
    held.engine.reply(model_ready())
    assert held.hub.engine_status().ready is not None


@pytest.mark.parametrize("command", [MeasureCeilings(), SweepTokens(counts=(1, 2))])
def test_an_engine_that_dies_while_it_measures_is_started_anew(
    held: HubUnderTest, command: MeasureCeilings | SweepTokens
) -> None:
    held.hub.measure(command)

    held.engine.reply(KILLED)

    assert held.hub.measure_status().kind is None
    assert "exit code -9" in held.hub.measure_status().sentence
    assert "while it measured" in held.hub.engine_words()
    held.engine.reply(model_ready())
    held.hub.measure(command)
    assert held.engine.commands[-1] == command


def test_an_engine_that_dies_in_a_run_is_started_anew_and_the_next_run_takes_the_words_away(
    held: HubUnderTest,
) -> None:
    run = held.begin()
    held.engine.reply(KILLED)
    assert run.state is RunState.FAILED
    assert "during a run" in held.hub.engine_words()
    held.engine.reply(model_ready())

    held.begin()

    assert held.hub.engine_words() == ""


def test_an_engine_that_dies_again_and_again_is_left_until_the_next_run(held: HubUnderTest) -> None:
    for _ in range(RESTARTS):
        held.engine.reply(KILLED)
        held.engine.reply(model_ready())
    held.engine.reply(KILLED)

    assert loads(held) == 1 + RESTARTS
    assert held.hub.engine_status().stage is None
    assert "4 times within 10 minutes" in held.hub.engine_status().error
    held.hub.submit(order("again"))
    assert loads(held) == 2 + RESTARTS


def test_deaths_long_ago_do_not_count(held: HubUnderTest) -> None:
    for _ in range(2 * RESTARTS):
        held.time_s += WITHIN_S
        held.engine.reply(KILLED)
        held.engine.reply(model_ready())

    assert loads(held) == 1 + 2 * RESTARTS


def test_an_engine_that_dies_while_it_loads_is_not_started_again_by_itself(
    held: HubUnderTest,
) -> None:
    held.engine.reply(KILLED)
    held.engine.reply(KILLED)

    assert loads(held) == 2
    assert "ended unexpectedly" in held.hub.engine_status().error
    assert "while it loaded the model" in held.hub.engine_words()


def test_a_model_that_cannot_be_loaded_is_no_death(held: HubUnderTest) -> None:
    held.engine.reply(LoadFailed(request=DEFAULT_LOAD, sentence="broken"))

    assert held.hub.engine_words() == ""


def test_stop_on_a_frozen_engine_ends_it_and_keeps_what_was_recorded(held: HubUnderTest) -> None:
    run = held.begin()
    held.step(run, 0, "x")
    held.hub.control(run, Action.STOP)
    held.time_s += STOP_LIMIT_S - 1
    held.hub.end_frozen()
    assert not held.engine.is_killed

    held.time_s += 1
    held.hub.end_frozen()
    assert held.engine.is_killed
    held.engine.reply(KILLED)

    trace = held.hub.snapshot(run)
    assert trace is not None
    assert (run.state, len(trace.events)) == (RunState.STOPPED, 1)
    assert "had not answered for 5 s" in run.message
    assert "did not answer" in held.hub.engine_words()
    assert loads(held) == 2


def test_an_engine_that_still_steps_is_not_ended(held: HubUnderTest) -> None:
    run = held.begin()
    held.hub.control(run, Action.STOP)
    for index in range(3):
        held.time_s += STOP_LIMIT_S - 1
        held.step(run, index, "x")
        held.hub.end_frozen()

    assert not held.engine.is_killed


def test_a_measurement_on_a_frozen_engine_can_be_stopped(held: HubUnderTest) -> None:
    held.hub.measure(MeasureCeilings())
    held.hub.stop_measuring()
    held.time_s += STOP_LIMIT_S
    held.hub.end_frozen()
    assert held.engine.is_killed

    held.engine.reply(KILLED)

    assert held.hub.measure_status().kind is None
    assert loads(held) == 2


def test_other_controls_end_nothing(held: HubUnderTest) -> None:
    run = held.begin()
    held.hub.control(run, Action.PAUSE)
    held.time_s += 10 * STOP_LIMIT_S
    held.hub.end_frozen()

    assert held.engine.commands[-1] == Control(run_id=run.run_id, action=Action.PAUSE)
    assert not held.engine.is_killed
