"""What the app knows of the model's self-check, from the load to the result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.process.messages import Checked, CheckFailed, CheckModel, EngineDied, RunEnded
from inference.records.checks import CheckOutcome
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, model_ready
from tests.checks import BEGUN, FAILED, PASSED, SUBJECT, WRONG
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.model_checks import NOT_KEPT, ModelCheckStatus


@pytest.fixture
def hub() -> HubUnderTest:
    under_test = HubUnderTest()
    under_test.hub.preload(DEFAULT_LOAD)
    return under_test


def test_a_model_that_was_never_checked_is_being_checked(hub: HubUnderTest) -> None:
    assert hub.hub.check_status() == ModelCheckStatus()

    hub.engine.reply(model_ready())
    assert hub.hub.check_status() == ModelCheckStatus(is_going=True)
    hub.engine.reply(Checked(check=BEGUN))
    assert hub.hub.check_status() == ModelCheckStatus(check=BEGUN, is_going=True)
    hub.engine.reply(Checked(check=PASSED, is_kept=False))

    assert hub.hub.check_status() == ModelCheckStatus(check=PASSED, sentence=NOT_KEPT)


def test_a_check_that_was_kept_comes_with_the_model(hub: HubUnderTest) -> None:
    hub.engine.reply(replace(model_ready(), check=PASSED))

    assert hub.hub.check_status() == ModelCheckStatus(check=PASSED)


def test_a_check_cut_short_goes_on(hub: HubUnderTest) -> None:
    late = replace(WRONG, outcome=CheckOutcome.IMPOSSIBLE, is_late=True)
    cut = replace(PASSED, checks=(late,))
    hub.engine.reply(replace(model_ready(), check=cut))

    assert hub.hub.check_status() == ModelCheckStatus(check=cut, is_going=True)


def test_a_check_that_ends_early_says_why_and_can_be_asked_for_again(hub: HubUnderTest) -> None:
    hub.engine.reply(model_ready())
    hub.engine.reply(Checked(check=BEGUN))
    hub.engine.reply(CheckFailed(sentence="no room"))

    assert hub.hub.check_status() == ModelCheckStatus(check=BEGUN, sentence="no room")
    hub.hub.check_model()
    assert hub.engine.commands[-1] == CheckModel()
    assert hub.hub.check_status() == ModelCheckStatus(is_going=True)


def test_without_a_model_nothing_is_checked(hub: HubUnderTest) -> None:
    hub.hub.check_model()

    assert not any(isinstance(command, CheckModel) for command in hub.engine.commands)


def test_an_engine_that_dies_takes_its_check_with_it(hub: HubUnderTest) -> None:
    hub.engine.reply(model_ready())
    hub.engine.reply(EngineDied(exit_code=-9))

    status = hub.hub.check_status()
    assert (status.check, status.is_going) == (None, False)
    assert status.sentence.startswith("the engine process ended unexpectedly")


def test_runs_made_before_the_check_are_marked_with_what_differs() -> None:
    hub = HubUnderTest()
    run = hub.begin()
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    hub.engine.reply(Checked(check=replace(FAILED, is_whole=False)))
    assert hub.hub.snapshot(run).info.check_warning == FAILED.warning
    hub.engine.reply(Checked(check=PASSED))

    assert hub.hub.snapshot(run).info.check_warning == ""


def test_runs_of_another_model_are_not_marked() -> None:
    hub = HubUnderTest()
    run = hub.begin()
    other = replace(FAILED, subject=replace(SUBJECT, model_id="another"))

    hub.engine.reply(Checked(check=other))

    assert hub.hub.snapshot(run).info.check_warning == ""
