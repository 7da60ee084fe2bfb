"""A press on another page's link wins at any moment, and what was typed is there on return.

The moments are drawn with a seed, counted from when the page that is left has come; the server is
fresh, so that its model loads meanwhile and every page has something to tell of itself.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import PATIENCE_S, Tab, running_app, wait_until
from visuals.live.page_addresses import PAGES

pytestmark = pytest.mark.browser

LATEST_MS = 550
LANDED_S = 60.0
OTHERS = tuple(page.capitalize() for page in PAGES)
# What only this page shows; the tabs of Roofline and Batching have these names.
SHOWN = {
    "Live": ".st-key-prompt textarea",
    "Tour": "text=1 of 7: One forward pass",
    "Compare": "text=Or paste prompts",
    "Roofline": "role=tab[name='Where the bottleneck turns']",
    "Batching": "role=tab[name='Latency per request']",
    "Serving": "text=Whose figures are shown",
    "Device": "text=Start a run on the Live page",
    "Runs": "text=Open run files",
    "Playlists": "text=Open playlist files",
    "Check": "text=Is what is shown here what the model computes",
}
LABELS = {"Check": "Self-check"}  # of links that are not named as their address
# Notes every page that the address names, one after another.
WATCH_ADDRESS = """(() => {
  const trail = (window.__trail = ['Live']);
  const note = () => {
    const name = location.pathname.split('/').filter(Boolean).pop() || 'live';
    const page = name[0].toUpperCase() + name.slice(1);
    if (trail.at(-1) !== page) trail.push(page);
  };
  for (const way of ['pushState', 'replaceState']) {
    const own = history[way].bind(history);
    history[way] = (...values) => { own(...values); note(); };
  }
  addEventListener('popstate', note);
})()"""
# Presses the link of a page a moment from now, as a user does who is not waiting for anything.
PRESS = """([page, delay]) => setTimeout(() => {
  for (const link of document.querySelectorAll('a'))
    if (link.textContent.trim() === page) { link.click(); return; }
  window.__trail.push('no link to ' + page);
}, delay)"""


class Visit:
    """A fresh context on the Live page with a prompt typed, and the pages pressed since."""

    def __init__(self, browser: Browser, url: str, prompt: str, moments: Random) -> None:
        self.tab = Tab(browser.new_context().new_page())
        self.tab.page.set_default_timeout(PATIENCE_S * 1e3)
        self.tab.listen()
        self.pressed = ["Live"]
        self.prompt = prompt
        self._moments = moments
        self.tab.page.add_init_script(WATCH_ADDRESS)
        self.tab.page.goto(url)
        self.page.get_by_role("button", name="Start").wait_for()
        self.tab.type_prompt(prompt)

    @property
    def page(self) -> Page:
        return self.tab.page

    def press(self, name: str) -> None:
        """Press a page's link at a random moment and wait until that page has come."""
        self.page.evaluate(PRESS, [LABELS.get(name, name), self._moments.randrange(LATEST_MS + 1)])
        self.pressed.append(name)
        self._wait_for(name)
        if name == "Live":
            self.check_prompt()

    def check_prompt(self) -> None:
        """Check that the prompt box holds what was typed."""
        box = self.page.get_by_role("textbox", name="Prompt", exact=True)
        wait_until(
            lambda: box.input_value() == self.prompt,
            LANDED_S,
            lambda: f"the prompt is {box.input_value()!r} after {self.pressed}",
        )

    def check_trail(self) -> None:
        """Check that the pages shown were those pressed and no other, once nothing runs."""
        app = self.page.locator("[data-test-script-state]")
        wait_until(lambda: app.get_attribute("data-test-script-state") == "notRunning")
        assert self.page.evaluate("window.__trail") == self.pressed
        assert self.tab.complaints == []

    def _wait_for(self, name: str) -> None:
        """Wait until a page is shown and named by the address."""
        shown = self.page.locator(SHOWN[name]).first
        wait_until(
            lambda: shown.is_visible() and self._trail()[len(self.pressed) - 1 :] == [name],
            LANDED_S,
            lambda: f"pressed {self.pressed}, shown {self._trail()}",
        )

    def _trail(self) -> list[str]:
        return self.page.evaluate("window.__trail")


def every_pair(names: tuple[str, ...]) -> list[str]:
    """Return a round in which every name follows every other exactly once."""
    walk = [names[0]]
    for at, name in enumerate(names[:-1]):
        for later in names[at + 2 :]:
            walk += [later, name]
        walk.append(names[at + 1])
    return walk + list(reversed(names[:-1]))


def test_the_walk_has_every_pair_of_pages() -> None:
    walk = every_pair(("Live", *OTHERS))

    pairs = [(one, other) for one in SHOWN for other in SHOWN if one != other]
    assert sorted(pairwise(walk)) == sorted(pairs)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param(("first",), 18, id="there-and-back"),
        pytest.param(("first", "second"), 126, id="every-pair", marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(600)  # starts the app, twice for every pair
def test_presses_at_random_moments_end_on_the_page_pressed(
    browser: Browser, tmp_path: Path, starts: tuple[str, ...], expected: int
) -> None:
    """A message of the page that was left ran that page again, and its prompt was empty."""
    moments = Random(11)
    presses = 0
    for start in starts:
        (tmp_path / start).mkdir()
        with running_app(tmp_path / start) as server:
            visits: list[Visit] = []
            for name in OTHERS:
                visit = Visit(browser, server.url, f"{start}: say {name}.", moments)
                visit.press(name)
                visit.press("Live")
                visits.append(visit)
            if start == "second":
                for name in every_pair(("Live", *OTHERS))[1:]:
                    visits[-1].press(name)
            for visit in visits:
                visit.check_trail()
                visit.page.context.close()
            presses += sum(len(visit.pressed) - 1 for visit in visits)

    assert presses == expected
