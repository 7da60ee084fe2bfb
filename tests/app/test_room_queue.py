"""The queue that operators of a room see, in AppTest: whose runs, and the button that ends one."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inference.records.status import RunState
from inference.runs.store import RunStore
from tests.app.stage import STAGE, shown
from tests.builders import order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.fair_use import FairUse, Limits, VisitorHub

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("room_queue_script.py"))


def test_the_queue_says_whose_run_is_where_and_ends_one(tmp_path: Path) -> None:
    STAGE.under_test = HubUnderTest()
    STAGE.under_test.load()
    fair_use = FairUse(Limits(), RunStore(tmp_path))
    hubs = [
        VisitorHub(STAGE.under_test.hub, fair_use, name) for name in ("visitor-one", "other-two")
    ]
    empty = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert empty.expander[0].label == "Queue of this server: 0 runs"
    assert empty.caption[0].value == "Nothing is running or waiting."

    hubs[0].submit(order("mine"))
    theirs = hubs[1].submit(order("![x](http://evil.example/p.png) theirs"))
    page = AppTest.from_file(SCRIPT, default_timeout=30).run()

    assert page.expander[0].label == "Queue of this server: 2 runs"
    first, second = (caption.value for caption in page.caption)
    assert "you" in first
    assert "mine" in first
    assert "visitor othe" in shown(second)
    assert "1 in the queue" in shown(second)
    assert "![x](" not in second
    page.button(key=f"end-{theirs.run_id}").click().run()
    assert theirs.state is RunState.STOPPED
    assert page.expander[0].label == "Queue of this server: 1 run"
