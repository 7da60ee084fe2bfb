"""Waiting for a request that has not come in: stopped, paused and timed, on a scripted pipe."""

from __future__ import annotations

from inference.process.messages import Action, Control
from tests.doubles import GATED_RUN as RUN
from tests.doubles import GateUnderTest


def control(action: Action) -> Control:
    return Control(run_id=RUN, action=action)


def test_the_wait_is_as_long_as_asked() -> None:
    under_test = GateUnderTest()

    assert under_test.gate.idle(2.5)
    assert under_test.clock.now_s() == 2.5


def test_a_stop_ends_the_wait_and_the_run() -> None:
    under_test = GateUnderTest(control(Action.STOP))

    assert not under_test.gate.idle(1000.0)
    assert not under_test.gate.wait()
    assert under_test.clock.now_s() == 0.0


def test_a_pause_meanwhile_holds_the_step_after_the_wait() -> None:
    under_test = GateUnderTest(control(Action.PAUSE))

    assert under_test.gate.idle(2.0)

    assert under_test.clock.now_s() == 2.0
    under_test.pipe.say(control(Action.RESUME))
    assert under_test.gate.wait()
