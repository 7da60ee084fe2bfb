"""What the loading line is answered when it asks."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from inference.process.messages import LoadFailed, Loading
from inference.records.status import LoadStage
from tests.builders import DEFAULT_LOAD, model_ready
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.engine_route import engine_routes


@pytest.fixture
def under_test() -> HubUnderTest:
    hub_under_test = HubUnderTest()
    hub_under_test.hub.preload(DEFAULT_LOAD)
    return hub_under_test


def answer(under_test: HubUnderTest) -> dict[str, object]:
    with TestClient(Starlette(routes=engine_routes(under_test.hub))) as client:
        response = client.get("/live/engine")
    assert response.headers["cache-control"] == "no-store"
    return response.json()


def test_a_model_that_is_loaded_says_how_far_it_is(under_test: HubUnderTest) -> None:
    under_test.engine.reply(Loading(stage=LoadStage(stage="reading weights", ratio=0.5)))

    assert answer(under_test) == {"stage": "reading weights", "ratio": 0.5, "error": ""}


def test_a_model_that_is_there_ends_the_line(under_test: HubUnderTest) -> None:
    under_test.engine.reply(model_ready())

    assert answer(under_test) == {"stage": "", "ratio": None, "error": ""}


def test_a_model_that_cannot_be_loaded_says_why(under_test: HubUnderTest) -> None:
    under_test.engine.reply(LoadFailed(request=DEFAULT_LOAD, sentence="the checksum is wrong"))

    assert answer(under_test) == {"stage": "", "ratio": None, "error": "the checksum is wrong"}
