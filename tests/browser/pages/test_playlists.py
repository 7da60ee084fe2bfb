"""A playlist in a browser: built, noted, and played with the keys, at any width."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.actions import fit_every_width
from tests.browser.conftest import Server, Tab, wait_until

pytestmark = pytest.mark.browser

NOTE = "Look at <b>K/V</b> :red[here]"


def wait_until_drawn(tab: Tab) -> None:
    """Wait until the panel is there and the page's script is over: only then do keys do things."""
    expect(tab.page.locator(".tbt").last).to_be_visible()
    app = tab.page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")


def press_until(tab: Tab, key: str, shown: Locator) -> None:
    """Press a shortcut until it is heard: one during a rerun of the page can be lost."""

    def is_heard() -> bool:
        tab.page.keyboard.press(key)
        try:
            shown.wait_for(timeout=5000)
        except PlaywrightTimeout:
            return False
        return True

    wait_until(is_heard)


def test_a_list_is_built_noted_and_played_with_the_keys(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    page = tab.page
    page.goto(f"{server.url}/playlists")
    page.get_by_role("button", name="New playlist").click()
    title = page.get_by_role("textbox", name="Title")
    title.fill("Monday")
    title.press("Enter")
    for name in ("A sliding window", "A batch of eight"):
        page.get_by_role("combobox", name="Add runs").fill(name)
        page.get_by_role("option", name=name).click()
    page.keyboard.press("Escape")
    page.locator(".st-key-playlist-add button").click()
    note = page.get_by_role("textbox", name="Note of item 1")
    note.fill(NOTE)
    note.press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    fit_every_width(tab)

    page.locator(".st-key-playlist-play").get_by_role("button").first.click()
    expect(page.locator(".st-key-playlist-note")).to_contain_text(NOTE)
    expect(page.get_by_role("heading", name="1 of 2: A sliding window")).to_be_visible()
    wait_until_drawn(tab)
    second = page.get_by_role("heading", name="2 of 2: A batch of eight")
    press_until(tab, "n", second)  # there is no third
    expect(page).to_have_url(re.compile(r"item=2"))
    fit_every_width(tab)
    page.reload()
    expect(page.get_by_role("heading", name="2 of 2: A batch of eight")).to_be_visible()
    wait_until_drawn(tab)
    press_until(tab, "b", page.locator(".st-key-playlist-note", has_text=NOTE))

    wait_until_drawn(tab)
    page.keyboard.press("f")
    expect(page.locator(".tbt.presented .idea")).to_have_text(NOTE)
    page.keyboard.press("Shift+PageDown")
    expect(page).to_have_url(re.compile(r"item=2"))
    expect(page.locator(".tbt.presented .idea")).not_to_have_text(NOTE)
    page.keyboard.press("Escape")
    assert tab.complaints == []
