"""The slider over a run's steps in a browser: the arrow keys move all panels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.actions import finish, new_tokens
from tests.browser.conftest import Tab, wait_until

pytestmark = pytest.mark.browser

TOKENS = 6


def steps_drawn(tab: Tab) -> int:
    """Return how many steps the newest panel on the page has drawn."""
    return int(tab.page.locator(".tbt").last.get_attribute("data-steps") or 0)


def test_the_arrow_keys_lead_through_the_steps_of_a_finished_run(
    open_tab: Callable[..., Tab],
) -> None:
    tab = open_tab()
    new_tokens(tab, TOKENS)
    tab.start()
    finish(tab)
    slider = tab.page.get_by_role("slider", name="Steps shown")
    expect(slider).to_be_visible()
    mounts = tab.panel().mounts
    slider.focus()

    for step in (TOKENS - 1, TOKENS - 2):
        tab.page.keyboard.press("ArrowLeft")
        wait_until(lambda step=step: steps_drawn(tab) == step, state=lambda: steps_drawn(tab))
    expect(tab.page.locator(".chip-decode")).to_contain_text(f"{TOKENS - 3}/{TOKENS - 1}")
    expect(tab.page.locator(".tok.out[data-id]")).to_have_count(TOKENS - 2)
    for step in (TOKENS - 1, TOKENS):
        tab.page.keyboard.press("ArrowRight")
        wait_until(lambda step=step: steps_drawn(tab) == step, state=lambda: steps_drawn(tab))

    assert tab.panel().mounts == mounts
    assert tab.complaints == []
