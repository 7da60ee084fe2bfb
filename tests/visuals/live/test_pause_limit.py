"""A paused run that others wait for: both sides are told, and it gives way."""

from __future__ import annotations

from inference.process.messages import Action, Control, RunEnded, StateChanged
from inference.records.status import RunState
from tests.builders import order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.live_run import LiveRun
from visuals.live.surroundings import PAUSE_LIMIT_S


def paused(under_test: HubUnderTest) -> LiveRun:
    run = under_test.begin()
    under_test.hub.watch(run)
    under_test.engine.reply(StateChanged(run_id=run.run_id, state=RunState.PAUSED))
    return run


def waiting(under_test: HubUnderTest) -> LiveRun:
    run = under_test.hub.submit(order("another"))
    under_test.hub.watch(run)
    return run


def stops(under_test: HubUnderTest) -> list[str]:
    sent = under_test.engine.commands
    return [one.run_id for one in sent if isinstance(one, Control) and one.action is Action.STOP]


def test_who_waits_is_told_of_the_pause_and_who_paused_is_told_of_those_who_wait() -> None:
    """A second user read "Number 1 in the queue" for as long as the first one's tab was open."""
    under_test = HubUnderTest()
    held, waiter = paused(under_test), waiting(under_test)

    assert "was paused" in under_test.hub.status(waiter).message
    assert "gives way in 5 minutes" in under_test.hub.status(waiter).message
    assert "Other runs are waiting" in under_test.hub.status(held).message
    under_test.time_s += PAUSE_LIMIT_S - 22
    assert "In 25 seconds" in under_test.hub.status(held).message


def test_a_paused_run_gives_way_when_its_time_is_over() -> None:
    under_test = HubUnderTest()
    held, waiter = paused(under_test), waiting(under_test)
    under_test.hub.stop_overdue()
    under_test.time_s += PAUSE_LIMIT_S - 1
    under_test.hub.stop_overdue()
    assert stops(under_test) == []

    under_test.time_s += 1
    under_test.hub.stop_overdue()

    assert stops(under_test) == [held.run_id]
    under_test.engine.reply(RunEnded(run_id=held.run_id, state=RunState.STOPPED))
    assert held.message == "stopped after 5 minutes of pause while other runs were waiting"
    assert under_test.hub.status(waiter).queue_position is None


def test_the_time_counts_from_when_another_waits_and_anew_with_each_step() -> None:
    under_test = HubUnderTest()
    held = paused(under_test)
    under_test.time_s += 10 * PAUSE_LIMIT_S
    under_test.hub.stop_overdue()
    waiting(under_test)
    under_test.hub.stop_overdue()
    under_test.time_s += PAUSE_LIMIT_S - 1
    under_test.hub.control(held, Action.STEP)
    under_test.time_s += PAUSE_LIMIT_S - 1

    under_test.hub.stop_overdue()

    assert stops(under_test) == []


def test_a_paused_run_that_holds_up_nobody_may_stay() -> None:
    under_test = HubUnderTest()
    held = paused(under_test)
    under_test.time_s += 10 * PAUSE_LIMIT_S

    under_test.hub.stop_overdue()

    assert stops(under_test) == []
    assert under_test.hub.status(held).message == ""
