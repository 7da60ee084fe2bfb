"""A batched run and the Batching page in a real browser on the real default model."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

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
    expect(batch).to_be_visible()
    expect(batch).to_contain_text("3 requests, 2 slots, continuous")
    expect(tab.page.locator(".strip")).to_have_count(3)
    expect(tab.page.locator(".texts .text")).to_have_text([re.compile(r"\S")] * 3)
    expect(batch.locator("canvas")).to_have_count(1)
    batch.get_by_role("button", name="latency of each").click()
    expect(batch.locator("tr")).to_have_count(4)
    assert tab.complaints == []


def test_one_prompt_alone_shows_no_batch(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Say hello.")
    new_tokens(tab, 3)

    tab.start()
    finish(tab)

    assert tab.page.locator(".panel-batch").is_hidden()
