"""A batched run and the Batching page in a real browser on the real default model."""

from __future__ import annotations

import pytest

from tests.browser.actions import OpenTab, choose, finish, new_tokens, type_number

pytestmark = pytest.mark.browser

PROMPTS = "Say hello.\n---\nName two colours.\n---\nCount to three."
NEW_TOKENS = 6


def test_three_prompts_in_two_slots_end_with_three_texts_and_a_timeline(
    open_tab: OpenTab,
) -> None:
    tab = open_tab()
    tab.type_prompt(PROMPTS)
    tab.page.get_by_role("button", name="Batch", exact=True).click()
    choose(tab, "batch_source", "typed")
    choose(tab, "batch_policy", "continuous")
    type_number(tab, "batch_slots", "2")
    tab.page.get_by_text("3 prompts in the prompt box.").wait_for()
    tab.page.keyboard.press("Escape")
    new_tokens(tab, NEW_TOKENS)

    tab.start()
    finish(tab)

    batch = tab.page.locator(".panel-batch")
    assert tab.panel().state == "done"
    assert batch.is_visible()
    assert "3 requests, 2 slots, continuous" in batch.inner_text()
    assert tab.page.locator(".strip").count() == 3
    texts = tab.page.locator(".texts .text").all_inner_texts()
    assert [bool(text.strip()) for text in texts] == [True] * 3
    assert batch.locator("canvas").count() == 1
    batch.get_by_role("button", name="latency of each").click()
    assert batch.locator("tr").count() == 4
    assert tab.complaints == []


def test_one_prompt_alone_shows_no_batch(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Say hello.")
    new_tokens(tab, 3)

    tab.start()
    finish(tab)

    assert tab.page.locator(".panel-batch").is_hidden()
