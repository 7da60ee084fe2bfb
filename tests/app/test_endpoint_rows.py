"""Kept runs of engines elsewhere on the Runs page: listed, side by side, deleted, opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.stage import STAGE
from tests.builders import run_info
from tests.inference.remote.kept_runs import kept_run
from tests.visuals.traces import trace_of

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("runs_script.py"))


@pytest.fixture
def page(tmp_path: Path) -> AppTest:
    STAGE.reset(tmp_path)
    STAGE.store.save(replace(trace_of([b"why"], [b"be", b"cause"]), info=run_info("here")))
    STAGE.endpoint_runs.store.save(kept_run("there"))
    STAGE.endpoint_runs.store.save(kept_run("other", "what else"))
    return AppTest.from_file(SCRIPT, default_timeout=30).run()


def tables(page: AppTest) -> str:
    return "\n".join(one.value for one in page.get("html"))


def test_ticked_runs_of_here_and_elsewhere_stand_side_by_side(page: AppTest) -> None:
    assert "side by side" not in tables(page)
    page.checkbox(key="pick-there").check().run()
    page.checkbox(key="pick-here").check().run()

    assert not page.exception
    assert "vLLM 0.32.0" in tables(page)
    assert "sums of step times" in tables(page)
    assert not page.warning
    page.checkbox(key="pick-other").check().run()
    assert "different prompts" in page.warning[0].value


def test_a_run_is_deleted_and_brought_back_and_opened_on_the_live_page(page: AppTest) -> None:
    page.button(key="delete-there").click().run()
    assert not STAGE.endpoint_runs.store.has("there")

    page.button(key="endpoint-undo").click().run()
    assert STAGE.endpoint_runs.store.has("there")
    page.button(key="open-there").click().run()
    assert page.session_state["live"]
    assert page.session_state["session"].live_page.run_id == "there"
