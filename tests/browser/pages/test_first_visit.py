"""A fresh data folder: every page has something to see, says that it is recorded, and gives way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from inference.storage.folders import cache_folder
from tests.browser.actions import finish, fit_every_width, new_tokens
from tests.browser.conftest import Server, Tab, running_app

pytestmark = pytest.mark.browser

# Of each page: its address, what says that it is recorded, and what is drawn below.
PAGES = (
    ("", "A recorded run", ".panel-roofline canvas"),
    ("compare", "A recorded comparison of three prompts", "table.figures"),
    ("roofline", "Recorded roofs", "[data-testid=stVegaLiteChart]"),
    ("batching", "A recorded sweep", "[data-testid=stVegaLiteChart]"),
    ("device", "The device during a recorded run", "table"),
    ("runs", "Recorded runs, each with one thing to see", ".st-key-shipped button"),
    ("playlists", "Recorded runs, each with one thing to see", ".st-key-pl-list button"),
)


@pytest.fixture(scope="module")
def fresh(default_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield an app of which nobody has asked anything, with the model and no roofs in its cache."""
    assert default_model_folder.is_dir()
    folder, cache = tmp_path_factory.mktemp("fresh"), tmp_path_factory.mktemp("cache")
    for part in ("models", "kernels"):
        if cache_folder(part).is_dir():
            (cache / part).symlink_to(cache_folder(part))
    with running_app(folder, cache) as running:
        yield running


def test_every_page_has_something_to_see_that_is_said_to_be_recorded(
    open_page: Callable[..., Tab], fresh: Server
) -> None:
    for path, words, drawn in PAGES:
        tab = open_page()
        tab.page.goto(f"{fresh.url}/{path}")

        expect(tab.page.get_by_text(words).first).to_be_visible()
        expect(tab.page.locator(drawn).first).to_be_visible()
        fit_every_width(tab)
        assert tab.complaints == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("?run=doesnotexist", "names run doesnotexist, which is not on this server"),
        ("compare?runs=nonsense", "not on this server: nonsense"),
        ("compare?group=zzz", "names comparison zzz, which is not on this server"),
        ("runs?run=nope", "run nope is not kept here"),
        ("playlists?playlist=nope&item=2", "playlist nope is not kept here"),
        ("tour?step=nonsense", "The tour has no chapter named nonsense"),
    ],
)
def test_a_dead_link_says_so(
    open_page: Callable[..., Tab], server: Server, path: str, words: str
) -> None:
    tab = open_page()
    tab.page.goto(f"{server.url}/{path}")

    expect(tab.page.get_by_text(words)).to_be_visible()
    assert tab.complaints == []


def test_a_run_made_before_the_roofs_gets_them_without_a_press(
    open_page: Callable[..., Tab], fresh: Server
) -> None:
    """A first run had no roofs, and its panel never found out that they had been measured."""
    tab = open_page()
    tab.page.goto(f"{fresh.url}/")
    tab.type_prompt("Name two rivers.")
    new_tokens(tab, 12)
    tab.start()
    finish(tab)
    roofline = tab.page.locator(".panel-roofline").last  # a panel that goes may still be there

    expect(roofline.locator(".caption")).to_contain_text("of the memory roof")
    expect(roofline.locator(".legend")).to_contain_text("measured here")
    roofline.get_by_role("button", name="linear").click()
    expect(roofline.locator(".caption")).to_contain_text("Decode: ")
    assert tab.complaints == []
