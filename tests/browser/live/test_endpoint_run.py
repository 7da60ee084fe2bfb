"""A run at an address in a real browser, against a scripted engine."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from inference.records.endpoints import EngineKind
from tests.browser.actions import OpenTab
from tests.browser.conftest import Server, wait_until
from tests.inference.remote.scripted_server import HOLD, Script, running_server
from tests.inference.remote.streams import CHAT, VLLM, engine_routes
from visuals.live.page_bench import ROOT

pytestmark = pytest.mark.browser

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
AXE_RUN = """async () => {
  const runOnly = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
  const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target}`));
}"""
KEY = "sk-not-in-any-page"


def test_a_run_at_an_address_is_started_stopped_and_opened_again(
    open_tab: OpenTab, server: Server
) -> None:
    answers = iter([Script(VLLM)])  # of the two tokens that find what the engine tells
    with running_server() as engine:
        engine.routes |= engine_routes(EngineKind.VLLM)
        engine.routes[CHAT] = lambda _request: next(answers, Script((*VLLM[:2], HOLD)))
        tab = open_tab()
        page = tab.page
        page.get_by_role("button", name="Source").click()
        page.get_by_role("radio", name="an address").click()
        page.get_by_label("Address of an engine").fill(engine.address)
        page.get_by_label("Address of an engine").press("Enter")
        page.get_by_role("textbox", name="API key (optional)").fill(KEY)
        page.get_by_role("button", name="Ask who is there").click()
        expect(page.get_by_text("answers there")).to_be_visible()
        assert {one.headers["authorization"] for one in engine.received} == {f"Bearer {KEY}"}
        assert KEY not in page.content()
        page.keyboard.press("Escape")

        tab.start()
        expect(page.locator(".arrivals .read").first).to_have_text("Hel")
        expect(page.get_by_role("button", name="Pause")).to_be_disabled()
        tab.press("Stop")

        wait_until(engine.closed.is_set)
        expect(
            page.locator(".st-key-endpoint-run").get_by_text("stopped", exact=True)
        ).to_be_visible()
        expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    again = open_tab(f"?run={tab.run_id}")
    expect(again.page.locator(".arrivals .read").first).to_have_text("Hel")
    again.page.evaluate(AXE.read_text(encoding="utf-8"))
    assert again.page.evaluate(AXE_RUN) == []
    assert KEY not in again.page.content() + server.log
    assert tab.complaints == again.complaints == []
