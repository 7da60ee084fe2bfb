"""Whose turn it is between two steps: pause, single step, stop and pace, on a scripted pipe."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import cast

from inference.process.messages import (
    Action,
    CaptureAttention,
    Control,
    Generate,
    Shutdown,
    SplitSteps,
    StateChanged,
)
from inference.process.step_gate import StepGate
from inference.records.status import RunState
from tests.doubles import GATED_RUN as RUN
from tests.doubles import GateUnderTest


def control(action: Action, *, run_id: str = RUN, steps_per_s: float | None = None) -> Control:
    return Control(run_id=run_id, action=action, steps_per_s=steps_per_s)


def test_without_a_command_every_step_may_go_at_once() -> None:
    under_test = GateUnderTest()

    assert [under_test.gate.wait() for _ in range(3)] == [True] * 3
    assert under_test.clock.time_s == 0


def test_one_press_of_step_lets_exactly_one_step_go() -> None:
    under_test = GateUnderTest(control(Action.STEP), is_paused=True)

    assert under_test.gate.wait()
    under_test.pipe.say(control(Action.STOP))
    assert not under_test.gate.wait()


def test_presses_that_came_together_are_all_counted() -> None:
    under_test = GateUnderTest(*[control(Action.STEP)] * 3, is_paused=True)

    assert [under_test.gate.wait() for _ in range(3)] == [True] * 3
    under_test.pipe.say(control(Action.STOP))
    assert not under_test.gate.wait()


def test_a_step_out_of_a_running_generation_pauses_it() -> None:
    under_test = GateUnderTest(control(Action.STEP))

    assert under_test.gate.wait()

    assert under_test.replies == [StateChanged(run_id=RUN, state=RunState.PAUSED)]


def test_pause_holds_until_resume_and_both_are_reported() -> None:
    under_test = GateUnderTest(control(Action.PAUSE), control(Action.RESUME))

    assert under_test.gate.wait()

    assert under_test.replies == [
        StateChanged(run_id=RUN, state=RunState.PAUSED),
        StateChanged(run_id=RUN, state=RunState.RUNNING),
    ]


def test_the_pace_spaces_the_starts_of_steps() -> None:
    under_test = GateUnderTest(steps_per_s=2.0)
    starts: list[float] = []

    for _ in range(3):
        under_test.gate.wait()
        starts.append(under_test.clock.time_s)
        under_test.clock.advance(0.1)  # the step itself

    assert starts == [0.0, 0.5, 1.0]


def test_a_step_slower_than_the_pace_waits_for_nothing() -> None:
    under_test = GateUnderTest(steps_per_s=2.0)
    under_test.gate.wait()
    under_test.clock.advance(0.7)

    under_test.gate.wait()

    assert under_test.clock.time_s == 0.7


def test_a_new_pace_holds_from_the_next_step() -> None:
    under_test = GateUnderTest()
    under_test.gate.wait()
    under_test.pipe.say(control(Action.PACE, steps_per_s=4.0))

    under_test.gate.wait()

    assert under_test.clock.time_s == 0.25


def test_a_command_for_another_run_is_ignored() -> None:
    under_test = GateUnderTest(control(Action.STOP, run_id="an earlier run"))

    assert under_test.gate.wait()


def test_shutdown_ends_the_run_and_is_remembered() -> None:
    under_test = GateUnderTest(Shutdown())

    assert not under_test.gate.wait()
    assert under_test.gate.is_shutdown


def test_only_a_run_that_starts_paused_says_so_at_its_beginning() -> None:
    paused, running = GateUnderTest(is_paused=True), GateUnderTest()

    paused.gate.begin()
    running.gate.begin()

    assert paused.replies == [StateChanged(run_id=RUN, state=RunState.PAUSED)]
    assert running.replies == []


def test_what_is_to_be_observed_is_handed_on_between_two_steps() -> None:
    capture = CaptureAttention(run_id=RUN, choice=None)
    split = SplitSteps(run_id=RUN, every=4)
    under_test = GateUnderTest(capture, split)
    observed: list[CaptureAttention | SplitSteps] = []
    gate = StepGate(
        cast("Connection", under_test.pipe),
        Generate(run_id=RUN, requests=(), seed=0),
        under_test.clock,
        under_test.replies.append,
        observed.append,
    )

    assert gate.wait()
    assert observed == [capture, split]


def test_a_held_run_begins_once_nothing_was_said_for_as_long_as_it_may_be_held() -> None:
    under_test = GateUnderTest(hold_s=1.0)

    under_test.gate.hold()

    assert under_test.clock.time_s == 1.0
    assert under_test.replies == [StateChanged(run_id=RUN, state=RunState.RUNNING)]
    assert under_test.gate.wait()
    assert under_test.clock.time_s == 1.0


def test_a_held_run_begins_at_once_when_its_page_is_quiet() -> None:
    under_test = GateUnderTest(control(Action.BEGIN), hold_s=1.0)

    under_test.gate.hold()

    assert under_test.clock.time_s == 0
    assert under_test.replies == [StateChanged(run_id=RUN, state=RunState.RUNNING)]


def test_a_pace_does_not_end_the_hold() -> None:
    under_test = GateUnderTest(control(Action.PACE, steps_per_s=2.0), hold_s=1.0)

    under_test.gate.hold()

    assert under_test.clock.time_s == 1.0


def test_a_held_run_that_is_stopped_takes_no_step() -> None:
    under_test = GateUnderTest(control(Action.STOP), hold_s=1.0)

    under_test.gate.hold()

    assert under_test.clock.time_s == 0
    assert not under_test.gate.wait()
    assert under_test.replies == []


def test_a_held_run_that_is_paused_is_paused_and_held_no_more() -> None:
    under_test = GateUnderTest(control(Action.PAUSE), hold_s=1.0)

    under_test.gate.hold()

    assert under_test.replies == [StateChanged(run_id=RUN, state=RunState.PAUSED)]
    under_test.pipe.say(control(Action.BEGIN), control(Action.STEP))
    assert under_test.gate.wait()


def test_a_run_that_is_not_held_waits_for_nobody_and_reports_nothing() -> None:
    for under_test in (GateUnderTest(), GateUnderTest(is_paused=True, hold_s=1.0)):
        under_test.gate.hold()

        assert under_test.clock.time_s == 0
        assert under_test.replies == []


def test_a_word_that_comes_after_the_hold_changes_nothing() -> None:
    under_test = GateUnderTest(hold_s=1.0)
    under_test.gate.hold()
    reported = list(under_test.replies)

    under_test.pipe.say(control(Action.BEGIN))

    assert under_test.gate.wait()
    assert under_test.replies == reported
