"""A batched run and the Batching page in a real browser on the real default model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Tab

pytestmark = pytest.mark.browser

OpenTab = Callable[..., Tab]
FINAL = ("done", "stopped", "failed", "abandoned")
PROMPTS = "Say hello.\n---\nName two colours.\n---\nCount to three."
NEW_TOKENS = 6


def choose(tab: Tab, key: str, option: str) -> None:
    tab.page.locator(f".st-key-{key} input").click()
    tab.page.get_by_role("option", name=option).click()


def number(tab: Tab, key: str, value: str) -> None:
    box = tab.page.locator(f".st-key-{key} input")
    box.fill(value)
    box.press("Enter")


def test_three_prompts_in_two_slots_end_with_three_texts_and_a_timeline(
    open_tab: OpenTab,
) -> None:
    tab = open_tab()
    tab.type_prompt(PROMPTS)
    tab.page.get_by_role("button", name="Batch").click()
    choose(tab, "batch_source", "typed")
    choose(tab, "batch_policy", "continuous")
    number(tab, "batch_slots", "2")
    tab.page.get_by_text("3 prompts in the prompt box.").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Settings").click()
    number(tab, "max_new_tokens", str(NEW_TOKENS))
    tab.page.keyboard.press("Escape")

    tab.start()
    tab.wait_for(lambda panel: panel.state in FINAL, timeout_s=180)

    batch = tab.page.locator(".panel-batch")
    assert tab.panel().state == "done"
    assert batch.is_visible()
    assert "3 requests, 2 slots, continuous" in batch.inner_text()
    assert tab.page.locator(".strip").count() == 3
    texts = tab.page.locator(".texts .text").all_inner_texts()
    assert all(text.strip() for text in texts)
    assert batch.locator("canvas").count() == 1
    batch.get_by_role("button", name="latency of each").click()
    assert batch.locator("tr").count() == 4
    assert tab.complaints == []


def test_one_prompt_alone_shows_no_batch(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Say hello.")
    tab.page.get_by_role("button", name="Settings").click()
    number(tab, "max_new_tokens", "3")
    tab.page.keyboard.press("Escape")

    tab.start()
    tab.wait_for(lambda panel: panel.state in FINAL, timeout_s=120)

    assert tab.page.locator(".panel-batch").is_hidden()
