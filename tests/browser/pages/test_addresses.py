"""Each page opens from its own address, and the browser has nothing to complain of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Server, Tab
from visuals.live.page_addresses import PAGES

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", ["", *PAGES, "roofline/"])
def test_a_pages_own_address_opens_it_without_an_error(
    open_page: Callable[..., Tab], server: Server, path: str
) -> None:
    """The console named two addresses below the page's that the server does not have."""
    tab = open_page()
    tab.page.on(
        "response",
        lambda answer: answer.status >= 400 and tab.complaints.append(answer.url),
    )

    tab.page.goto(f"{server.url}/{path}")

    app = tab.page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    chosen = tab.page.get_by_role("link", name=(path.strip("/") or "live").capitalize()).first
    expect(chosen).to_be_visible()
    expect(tab.page.get_by_test_id("stException")).to_have_count(0)
    assert tab.complaints == []
