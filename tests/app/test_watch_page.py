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

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("watch_script.py"))
PRESSED = (
    *("button", "checkbox", "selectbox", "text_area", "text_input", "number_input", "slider"),
    *("radio", "toggle", "multiselect", "button_group", "file_uploader", "download_button"),
)


@pytest.fixture
def hub() -> HubUnderTest:
    STAGE.under_test = HubUnderTest()
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
