"""The page of those who may only watch, in AppTest: the newest run, and nothing to press."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import RunEnded
from inference.records.status import RunState
from tests.app.stage import STAGE
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.presenting import Presenting, Seat

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("watch_script.py"))
PRESSED = (
    *("button", "checkbox", "selectbox", "text_area", "text_input", "number_input", "slider"),
    *("radio", "toggle", "multiselect", "button_group", "file_uploader", "download_button"),
)


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
    STAGE.presenting = Presenting(STAGE.under_test.hub)
    return STAGE.under_test


def followed(page: AppTest) -> list[str]:
    data = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    return [one["run_id"] for one in data if "run_id" in one]


def test_a_watcher_waits_for_a_run_and_follows_the_newest(hub: HubUnderTest) -> None:
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert "You are watching." in page.caption[0].value
    assert "No run has been started yet." in page.info[0].value
    assert followed(page) == []

    first = hub.begin()
    assert followed(page.run()) == [first.run_id]
    second = hub.hub.submit(first.order) if first.order is not None else first
    assert second is not first
    assert followed(page.run()) == [first.run_id], "the second has not begun"
    hub.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE, message=""))
    assert followed(page.run()) == [first.run_id]
    assert not page.exception


def test_a_watcher_has_nothing_to_press(hub: HubUnderTest) -> None:
    hub.begin()
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert {kind: len(page.get(kind)) for kind in PRESSED} == dict.fromkeys(PRESSED, 0)


def test_an_address_names_the_run_and_one_that_is_not_here_is_said(hub: HubUnderTest) -> None:
    run = hub.begin()
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["run"] = "gone"
    page.run()
    assert "not on this server" in page.warning[0].value
    assert followed(page) == [run.run_id]

    page.query_params["run"] = run.run_id
    page.run()
    assert not page.warning
    assert followed(page) == [run.run_id]


def stage_is_on(page: AppTest) -> bool:
    data = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    [stage] = [one["stage"] for one in data if "stage" in one]
    assert stage["role"] == "viewer"
    return stage["on"]


def test_a_watcher_is_shown_what_is_presented_and_keeps_it_when_the_presenter_leaves(
    hub: HubUnderTest,
) -> None:
    first = hub.begin()
    hub.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE, message=""))
    newest = hub.begin()
    hub.engine.reply(RunEnded(run_id=newest.run_id, state=RunState.DONE, message=""))
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert (followed(page), stage_is_on(page)) == ([newest.run_id], False)

    seat = Seat(wake=lambda: None, may_present=True)
    STAGE.presenting.take(seat, first)
    page.run()
    assert (followed(page), stage_is_on(page)) == ([first.run_id], True)
    STAGE.presenting.leave(seat)
    page.run()
    assert (followed(page), stage_is_on(page)) == ([first.run_id], False)

    later = hub.begin()
    assert followed(page.run()) == [later.run_id]


def test_a_watcher_who_asks_to_present_is_refused_in_a_sentence(hub: HubUnderTest) -> None:
    hub.begin()
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    page.query_params["present"] = "1"
    page.run()

    assert page.warning[0].value.startswith("You cannot present: this link is for watching only")
    assert not stage_is_on(page)


def test_a_watchers_page_does_not_run_again_for_each_press(hub: HubUnderTest) -> None:
    """Each press of an operator ran the pages of all who watch, before the next press was heard."""
    hub.begin()
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()
    (panel,) = [json.loads(one.proto.json) for one in page.get("bidi_component")]

    assert panel["state"] == RunState.DONE.value, "after which a panel says no other state"
