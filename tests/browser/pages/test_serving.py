"""An engine's figures and a load on it in a real browser, against a scripted engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from inference.records.endpoints import EngineKind
from tests.browser.conftest import Server, Tab
from tests.inference.remote.metrics_pages import vllm_page
from tests.inference.remote.scripted_server import Script, running_server
from tests.inference.remote.streams import CHAT, engine_routes

pytestmark = pytest.mark.browser

KEY = "sk-on-no-page"


def test_a_load_is_sent_from_the_page_and_its_results_are_shown(
    open_page: Callable[..., Tab], server: Server
) -> None:
    with running_server() as engine:
        engine.routes |= engine_routes(EngineKind.VLLM)
        engine.routes["/metrics"] = Script((vllm_page(running=3).encode(),), kind="text/plain")
        tab = open_page()
        page = tab.page
        page.goto(f"{server.url}/serving")
        expect(page.get_by_text("Whose figures are shown")).to_be_visible()
        page.get_by_label("Address of an engine").fill(engine.address)
        page.get_by_label("Address of an engine").press("Enter")
        page.get_by_role("textbox", name="API key (optional)").fill(KEY)
        page.get_by_role("button", name="Ask who is there").click()
        expect(page.get_by_text("this version does not say").first).to_be_visible()

        page.get_by_role("tab", name="Load").click()
        page.get_by_role("textbox", name="Requests at a time").fill("1,2")
        page.get_by_role("textbox", name="Requests at a time").press("Enter")
        page.get_by_role("button", name="Send the load").click()
        page.get_by_role("tab", name="Results").click()

        expect(page.get_by_text("16 of 16").first).to_be_visible()
        charts = page.get_by_test_id("stVegaLiteChart").locator("visible=true")
        expect(charts.locator("svg.marks, canvas.marks").first).to_be_visible()
        assert len(engine.asked(CHAT)) == 1 + (1 + 16) + (2 + 16)
        assert KEY not in page.content() + server.log
    assert tab.complaints == []
