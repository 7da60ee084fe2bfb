"""What several browser tests do on a page, and what they read off it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.browser.conftest import Tab, wait_until

OpenTab = Callable[..., Tab]
FINAL = ("done", "stopped", "failed", "abandoned")
# As opened, then wider, then as narrow as a phone after having been wide.
WIDTHS = (1280, 1920, 390)
# The script has ended, and every chart has been drawn.
IS_DRAWN = """() => {
  const app = document.querySelector("[data-test-script-state]");
  const charts = [...document.querySelectorAll(".stVegaLiteChart")];
  const shown = charts.filter((chart) => chart.checkVisibility());
  const isDrawn = shown.every((chart) => chart.querySelector("svg.marks, canvas.marks"));
  const isLoading = document.querySelector("[data-testid=stSkeleton]") !== null;
  return app?.dataset.testScriptState === "notRunning" && isDrawn && !isLoading;
}"""


def choose(tab: Tab, key: str, option: str) -> None:
    """Pick an option of the select box with this key."""
    tab.page.locator(f".st-key-{key} input").click()
    tab.page.get_by_role("option", name=option).click()


def type_number(tab: Tab, key: str, value: str) -> None:
    """Type into the number field with this key."""
    box = tab.page.locator(f".st-key-{key} input")
    box.fill(value)
    box.press("Enter")


def new_tokens(tab: Tab, count: int) -> None:
    """Set the maximum of new tokens in the settings."""
    tab.page.get_by_role("button", name="Settings").first.click()
    box = tab.page.get_by_role("spinbutton", name="Maximum new tokens")
    box.fill(str(count))
    box.press("Enter")
    tab.page.keyboard.press("Escape")


def slow_down(tab: Tab) -> None:
    """Have runs take five steps a second: one that only has to go on leaves time to others."""
    choose(tab, "pace", "Pace: 5 steps/s")


def finish(tab: Tab) -> None:
    """Wait until the run has ended, however it ended."""
    tab.wait_for(lambda panel: panel.state in FINAL)


def fit_every_width(tab: Tab, widths: Sequence[int] = WIDTHS) -> None:
    """Give the tab each width and wait until nothing on the page is wider than the window."""
    for width in widths:
        tab.page.set_viewport_size({"width": width, "height": 800})
        wait_until(lambda: overflow(tab) <= 0, state=lambda: f"{overflow(tab)} px too wide")
        assert tab.page.evaluate("window.innerWidth") == width


def overflow(tab: Tab) -> int:
    """Return by how many pixels the page is wider than the window."""
    return tab.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def show_weights(tab: Tab) -> None:
    """Show attention weights instead of the mask."""
    tab.page.get_by_role("button", name="weights", exact=True).click()


def caption(tab: Tab) -> str:
    """Return what stands below the picture of attention."""
    return tab.page.locator(".panel-mask .caption").inner_text()


def canvas_words(tab: Tab) -> str:
    """Return the text alternative of the picture of attention."""
    return str(tab.page.locator("canvas.mask").get_attribute("aria-label"))


def wait_for_caption(tab: Tab, text: str) -> None:
    """Wait until the caption contains a text."""
    wait_until(lambda: text in caption(tab), state=lambda: f"{caption(tab)!r}; {tab.panel()}")


def wait_for_words(tab: Tab, pattern: str) -> None:
    """Wait until the text alternative of the picture matches a pattern."""
    wait_until(
        lambda: re.search(pattern, canvas_words(tab)) is not None, state=lambda: canvas_words(tab)
    )


def point(tab: Tab, x: float, y: float) -> None:
    """Move the pointer to a place on the picture, given as shares of its size."""
    canvas = tab.page.locator("canvas.mask")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    tab.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


def wait_for_tip(tab: Tab, x: float, y: float, pattern: str) -> None:
    """Point at a place until the tip says something; the page may still move under the pointer."""

    def tip() -> str:
        point(tab, x, y)
        return tab.page.locator(".tip").inner_text()

    wait_until(lambda: re.search(pattern, tip()) is not None, state=tip)
