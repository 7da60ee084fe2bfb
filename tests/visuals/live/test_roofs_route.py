"""What the roofline panel is answered when it asks for the roofs of its run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from inference.process.messages import MeasureCeilings, MeasureEnded, Measuring, RunEnded
from inference.records.status import LoadStage, RunState
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, model_ready
from tests.visuals.live_doubles import MEASURED, HubUnderTest
from visuals.live.live_run import LiveRun
from visuals.live.roofs_route import BY_ITSELF, RECORDED, roofs_item, roofs_routes


@pytest.fixture
def hub() -> HubUnderTest:
    return HubUnderTest()


@pytest.fixture
def run(hub: HubUnderTest) -> LiveRun:
    made = hub.begin()
    hub.step(made, 0, "a")
    hub.engine.reply(RunEnded(run_id=made.run_id, state=RunState.DONE))
    return made


def test_a_run_of_the_model_held_waits_for_roofs_and_can_ask_for_them(
    hub: HubUnderTest, run: LiveRun
) -> None:
    assert roofs_item(hub.hub, run) == {
        "version": "",
        "words": BY_ITSELF,
        "is_offered": True,
        "is_pending": True,
    }


def test_a_measurement_that_goes_says_how_far_it_is(hub: HubUnderTest, run: LiveRun) -> None:
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(Measuring(stage=LoadStage(stage="reading 128 MiB of memory", ratio=0.1)))

    item = roofs_item(hub.hub, run)

    assert "being measured (reading 128 MiB of memory)" in str(item["words"])
    assert (item["is_offered"], item["is_pending"]) == (False, True)


def test_measured_roofs_are_another_version_and_can_be_measured_again(
    hub: HubUnderTest, run: LiveRun
) -> None:
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))

    item = roofs_item(hub.hub, run)

    assert item["version"]
    assert (item["words"], item["is_offered"], item["is_pending"]) == ("", True, False)


def test_a_run_in_another_number_format_says_when_its_roofs_are_measured(
    hub: HubUnderTest, run: LiveRun
) -> None:
    hub.hub.preload(DEFAULT_LOAD)
    hub.engine.reply(replace(model_ready(), device=replace(TINY_DEVICE, dtype="bfloat16")))

    item = roofs_item(hub.hub, run)

    assert f"No roofs for {TINY_DEVICE.dtype} on {TINY_DEVICE.name} yet" in str(item["words"])
    assert (item["is_offered"], item["is_pending"]) == (False, False)


def test_a_recorded_run_offers_nothing(hub: HubUnderTest, run: LiveRun) -> None:
    trace = hub.hub.snapshot(run)
    assert trace is not None
    recorded = hub.hub.adopt(trace)

    item = roofs_item(hub.hub, recorded)

    assert item == {"version": "", "words": RECORDED, "is_offered": False, "is_pending": False}


def test_only_who_knows_the_runs_token_is_answered(hub: HubUnderTest, run: LiveRun) -> None:
    with TestClient(Starlette(routes=roofs_routes(hub.hub))) as client:
        answer = client.get(f"/live/roofs/{run.run_id}", params={"k": run.token})
        wrong = client.get(f"/live/roofs/{run.run_id}", params={"k": "\u00e9"})
        unknown = client.get("/live/roofs/none", params={"k": run.token})

    assert answer.json()["words"] == BY_ITSELF
    assert answer.headers["cache-control"] == "no-store"
    assert (wrong.status_code, unknown.status_code) == (404, 404)
    assert wrong.json() == {}
