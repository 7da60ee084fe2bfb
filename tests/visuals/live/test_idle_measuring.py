"""Roofs that measure themselves: when the engine is idle, once, and behind any run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.process.messages import (
    LoadModel,
    MeasureCeilings,
    MeasureEnded,
    RunEnded,
    StopMeasuring,
)
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, model_ready, order
from tests.visuals.live_doubles import MEASURED, HubUnderTest
from visuals.live.idle_measuring import IDLE_S, LONGEST_WAIT_S


@pytest.fixture
def hub() -> HubUnderTest:
    under_test = HubUnderTest()
    under_test.load()
    return under_test


def tick(under_test: HubUnderTest, seconds: float = IDLE_S + 1, busy: float = 0.1) -> None:
    """Let the hub keep house, then again after a while."""
    under_test.hub.measure_when_idle(busy)
    under_test.time_s += seconds
    under_test.hub.measure_when_idle(busy)


def asked(under_test: HubUnderTest) -> int:
    return under_test.engine.commands.count(MeasureCeilings())


def test_an_idle_engine_is_measured_by_itself_once(hub: HubUnderTest) -> None:
    hub.hub.measure_when_idle(0.1)
    assert asked(hub) == 0

    tick(hub)

    assert asked(hub) == 1
    assert hub.hub.measure_status().is_by_itself
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    assert hub.hub.measure_status().ceilings == MEASURED
    assert not hub.hub.measure_status().is_by_itself
    tick(hub)
    assert asked(hub) == 1


def test_roofs_that_are_kept_are_not_measured_again() -> None:
    under_test = HubUnderTest()
    under_test.hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(replace(model_ready(), ceilings=MEASURED))

    tick(under_test)

    assert asked(under_test) == 0


def test_nothing_is_measured_without_a_model_or_during_a_run() -> None:
    under_test = HubUnderTest()
    tick(under_test)
    assert under_test.engine.commands == []
    run = under_test.begin()

    tick(under_test)
    assert asked(under_test) == 0
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    tick(under_test)

    assert asked(under_test) == 1


def test_a_run_goes_first_and_the_roofs_are_measured_after_it(hub: HubUnderTest) -> None:
    tick(hub)
    run = hub.hub.submit(order("a"))

    assert hub.engine.commands[-1] == StopMeasuring()
    second = hub.hub.submit(order("b"))
    assert hub.engine.commands.count(StopMeasuring()) == 1
    hub.engine.reply(MeasureEnded(sentence="stopped; nothing was changed"))

    assert hub.generates()[-1].run_id == run.run_id
    assert hub.hub.measure_status().sentence == ""
    for one in (run, second):
        hub.engine.reply(RunEnded(run_id=one.run_id, state=RunState.DONE))
    tick(hub)
    assert asked(hub) == 2


def test_what_somebody_asked_for_gives_way_to_nothing(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())

    hub.hub.submit(order("a"))

    assert StopMeasuring() not in hub.engine.commands


def test_a_stop_by_the_user_is_the_end_of_it(hub: HubUnderTest) -> None:
    tick(hub)
    hub.hub.stop_measuring()
    hub.engine.reply(MeasureEnded(sentence="stopped; nothing was changed"))

    tick(hub)

    assert asked(hub) == 1
    assert "stopped" in hub.hub.measure_status().sentence


def test_another_number_format_has_roofs_of_its_own(hub: HubUnderTest) -> None:
    tick(hub)
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    other = LoadModel(model="default", dtype="bfloat16")
    device = replace(TINY_DEVICE, dtype="bfloat16")
    run = hub.hub.submit(replace(order("a"), load=other))
    hub.engine.reply(replace(model_ready(), request=other, device=device))
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    tick(hub)

    assert asked(hub) == 2


def test_a_busy_machine_is_waited_for_but_not_for_ever() -> None:
    under_test = HubUnderTest()
    under_test.load()

    tick(under_test, busy=0.9)
    assert asked(under_test) == 0
    tick(under_test, LONGEST_WAIT_S, busy=0.9)

    assert asked(under_test) == 1
