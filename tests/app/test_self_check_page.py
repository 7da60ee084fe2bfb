"""The Self-check page in AppTest: nothing loaded, on its way, passed, failed, ended early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import Checked, CheckFailed, CheckModel, LoadFailed
from inference.records.checks import CheckKind, CheckOutcome
from tests.app.stage import STAGE, shown
from tests.builders import DEFAULT_LOAD, model_ready
from tests.checks import BEGUN, FAILED, PASSED, WRONG
from tests.visuals.live_doubles import HubUnderTest

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("self_check_script.py"))


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    return STAGE.under_test


def page() -> AppTest:
    made = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert not made.exception
    return made


def load(hub: HubUnderTest) -> None:
    hub.hub.preload(DEFAULT_LOAD)
    hub.engine.reply(model_ready())


def test_without_a_model_there_is_nothing_to_check(hub: HubUnderTest) -> None:
    assert page().info[0].value.startswith("No model is loaded")
    hub.hub.preload(DEFAULT_LOAD)
    assert page().info[0].value == "The model is being loaded; it is checked after that."
    hub.engine.reply(LoadFailed(request=DEFAULT_LOAD, sentence="no room"))
    assert page().warning[0].value == "The model could not be loaded: no room"


def test_a_check_on_its_way_says_how_far_it_is(hub: HubUnderTest) -> None:
    load(hub)
    hub.engine.reply(Checked(check=replace(BEGUN, checks=PASSED.checks)))

    made = page()

    assert made.button(key="check-again").disabled
    assert made.get("progress")[0].text.startswith("1 of 6 checks are done")
    assert len(made.get("html")) == 1


def test_what_passed_and_what_is_not_possible_is_named(hub: HubUnderTest) -> None:
    load(hub)
    kernels = replace(WRONG, kind=CheckKind.KERNELS, outcome=CheckOutcome.IMPOSSIBLE)
    hub.engine.reply(Checked(check=replace(PASSED, checks=(*PASSED.checks, kernels))))

    made = page()

    assert made.success[0].value == "Passed: ids."
    assert [one.value for one in made.info] == ["Not possible here: kernels; the table says why."]
    assert not made.error
    assert "a machine; torch 2.13.0" in shown(made.caption[0].value)


def test_what_there_was_no_time_for_is_named_with_the_way_on(hub: HubUnderTest) -> None:
    load(hub)
    late = replace(WRONG, outcome=CheckOutcome.IMPOSSIBLE, is_late=True)
    hub.engine.reply(Checked(check=replace(PASSED, checks=(late,))))

    [said] = [one.value for one in page().info]

    assert said.startswith("Not done yet: ids.")
    assert "Press Check again" in said


def test_what_differs_is_said_first_and_can_be_checked_again(hub: HubUnderTest) -> None:
    load(hub)
    hub.engine.reply(Checked(check=FAILED))

    made = page()

    assert "differs: ids (3 of 8 ids are the same)." in shown(made.error[0].value)
    assert not made.success
    made.button(key="check-again").click().run()
    assert hub.engine.commands[-1] == CheckModel()


def test_a_check_that_ended_early_says_why(hub: HubUnderTest) -> None:
    load(hub)
    hub.engine.reply(CheckFailed(sentence="the check ended early: no room"))

    made = page()

    assert shown(made.warning[0].value) == "The check ended early: no room."
    assert made.info[0].value == "This model is not checked yet."
    assert not made.button(key="check-again").disabled
