"""The route that the badge asks: what it says in each state, and whether to ask again."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.testclient import TestClient

from inference.process.messages import Checked
from tests.builders import DEFAULT_LOAD, model_ready
from tests.checks import PASSED
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.check_route import CHECK_PATH, check_item, check_routes


def test_the_badge_follows_the_model_from_nothing_to_the_result() -> None:
    under_test = HubUnderTest()
    hub = under_test.hub

    nothing = check_item(hub)
    hub.preload(DEFAULT_LOAD)
    loading = check_item(hub)
    under_test.engine.reply(model_ready())
    going = check_item(hub)
    under_test.engine.reply(Checked(check=PASSED))
    done = TestClient(Starlette(routes=check_routes(hub))).get(f"/{CHECK_PATH}")

    assert nothing == {"model": "", "state": "none", "words": "", "is_changing": False}
    assert loading == {"model": "", "state": "none", "words": "", "is_changing": True}
    assert (going["state"], going["is_changing"]) == ("going", True)
    assert done.headers["cache-control"] == "no-store"
    assert done.json() == {
        "model": "tiny \u00b7 float32",
        "state": "passed",
        "words": "checked here: ids",
        "is_changing": False,
    }
