"""Looking back at the steps of a run, on the Live page and where a kept run plays again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.process.messages import Action, RunEnded, StateChanged
from inference.records.run import RunTrace
from inference.records.status import RunState
from tests.app.stage import STAGE
from tests.builders import run_info
from tests.visuals.live_doubles import GRACE_S, HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.live_run import LiveRun

pytestmark = pytest.mark.app

HERE = Path(__file__).parent
STEPS = 3


@pytest.fixture
def hub(tmp_path: Path) -> HubUnderTest:
    STAGE.reset(tmp_path)
    STAGE.under_test.load()
    return STAGE.under_test


@pytest.fixture
def run(hub: HubUnderTest) -> LiveRun:
    """Return a run of three steps that goes on."""
    made = hub.begin()
    for index in range(STEPS):
        hub.step(made, index, "abc"[index])
    return made


def live(run: LiveRun) -> AppTest:
    page = AppTest.from_file(str(HERE / "live_script.py"), default_timeout=30)
    page.query_params["run"] = run.run_id
    page.run()
    assert not page.exception
    return page


def shown(page: AppTest) -> RunTrace:
    """Return what the panel on the page shows."""
    every = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    [run_id] = [data["run_id"] for data in every if "run_id" in data]
    run = STAGE.under_test.hub.find(run_id)
    assert run is not None
    trace = STAGE.under_test.hub.snapshot(run)
    assert trace is not None
    return trace


def go_to(page: AppTest, key: str, step: int) -> None:
    page.slider(key=key).set_value(step).run()
    assert not page.exception


def test_a_finished_run_is_shown_after_any_step_and_comes_back(
    hub: HubUnderTest, run: LiveRun
) -> None:
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    page = live(run)
    whole = hub.hub.snapshot(run)
    assert whole is not None
    assert page.slider(key="live-step").value == STEPS

    for step in (1, 2, 0):
        go_to(page, "live-step", step)
        assert shown(page).events == whole.events[:step]
        assert page.slider(key="live-step").value == step
        assert page.query_params["run"] in (run.run_id, [run.run_id])

    go_to(page, "live-step", STEPS)
    assert shown(page) == whole


def test_a_run_that_goes_has_no_slider_and_a_paused_one_is_watched_meanwhile(
    hub: HubUnderTest, run: LiveRun
) -> None:
    """The panel showed an earlier step, so nobody watched the run, and it was stopped."""
    page = live(run)
    assert not [one for one in page.slider if one.key == "live-step"]
    hub.engine.reply(StateChanged(run_id=run.run_id, state=RunState.PAUSED))
    page.run()
    go_to(page, "live-step", 1)
    assert len(shown(page).events) == 1

    hub.time_s += GRACE_S - 1
    page.run()
    hub.time_s += GRACE_S - 1
    hub.hub.abandon_unwatched()

    assert not run.is_abandoned


def test_a_step_more_of_a_paused_run_shows_the_newest_again(
    hub: HubUnderTest, run: LiveRun
) -> None:
    hub.engine.reply(StateChanged(run_id=run.run_id, state=RunState.PAUSED))
    page = live(run)
    go_to(page, "live-step", 1)

    hub.step(run, STEPS, "d")
    page.run()

    assert len(shown(page).events) == STEPS + 1
    assert page.slider(key="live-step").value == STEPS + 1


def test_another_run_is_shown_from_its_own_newest_step(hub: HubUnderTest, run: LiveRun) -> None:
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    page = live(run)
    go_to(page, "live-step", 1)

    page.button(key="start").click().run()

    assert not page.exception
    assert not [one for one in page.slider if one.key == "live-step"]


def test_a_kept_run_goes_to_any_step_and_plays_on_from_there(hub: HubUnderTest) -> None:
    kept = replace(trace_of([b"why"], [b"be", b"cause", b"so"]), info=run_info("one"))
    STAGE.store.save(kept)
    page = AppTest.from_file(str(HERE / "runs_script.py"), default_timeout=30)
    page.query_params["run"] = "one"
    page.query_params["view"] = "whole"
    page.run()
    assert page.slider(key="replay-step").value == STEPS

    go_to(page, "replay-step", 1)

    assert shown(page).events == kept.events[:1]
    assert "view" not in page.query_params
    assert page.button(key="pause").label == "Play"
    page.button(key="pause").click().run()
    assert page.slider(key="replay-step").disabled
    hub.time_s += 100
    page.run()
    assert shown(page).events == kept.events
    assert page.slider(key="replay-step").value == STEPS
    go_to(page, "replay-step", 2)
    replayed = hub.hub.runs()[-1]
    hub.hub.control(replayed, Action.STEP)
    assert shown(page) == kept
