"""An address that tries to be markup is shown as text by a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Tab

pytestmark = pytest.mark.browser


def test_an_address_that_tries_to_be_markup_is_text(open_tab: Callable[..., Tab]) -> None:
    """Images and links in ``?run=`` were drawn, and asked another machine for a picture."""
    page = open_tab().page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    links = "![x](http://e.example/x.png) http://e.example/y www.e.example z@e.example"
    page.goto(f"{page.url.split('?')[0]}?run={links}")

    expect(page.get_by_text("which is not on this server").first).to_be_visible(timeout=60_000)
    assert page.locator("[data-testid=stAlert] :is(a, img)").count() == 0
    assert page.get_by_text("![x](http:").count() > 0
    assert not [url for url in asked if url.startswith("http://e.example")]
