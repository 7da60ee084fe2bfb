"""A presenter and two viewers: panels, steps, light and ring are followed; nobody else steers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import finish, new_tokens
from tests.browser.conftest import Server, Tab, wait_until

pytestmark = pytest.mark.browser

TOKENS = 4
READABLE = 24  # pixels, at 1920 across
HEADLINE = 60
# The smallest type of all texts that can be seen, as it is on the screen, with one that has it.
SMALLEST = """(root) => {
  const by = root.getBoundingClientRect().width / root.offsetWidth;
  const seen = [...root.querySelectorAll("*")].filter((node) =>
    node.checkVisibility({ visibilityProperty: true })
    && [...node.childNodes].some((child) => child.nodeType === 3 && child.nodeValue.trim()));
  const size = (node) => by * parseFloat(getComputedStyle(node).fontSize);
  const sizes = seen.map((node) => [size(node), node.textContent]);
  return sizes.sort(([one], [other]) => one - other)[0];
}"""
# Where the ring is, as shares of the panel that it is in.
RING = """(ring) => {
  const [at, box] = [ring, ring.parentElement].map((node) => node.getBoundingClientRect());
  const [x, y] = [at.left + at.width / 2, at.top + at.height / 2];
  return [(x - box.left) / box.width, (y - box.top) / box.height];
}"""


def shown(page: Page) -> list[str]:
    """Return the panels that presenter mode shows."""
    names = page.locator(".presented .panel.shown").evaluate_all(
        "(boxes) => boxes.map((box) => /panel-(\\w+)/.exec(box.className)[1])"
    )
    return sorted(names)


def steps(page: Page) -> int:
    return int(page.locator(".tbt").last.get_attribute("data-steps") or 0)


def all_are_at(pages: Sequence[Page], step: int) -> None:
    wait_until(
        lambda: all(steps(page) == step for page in pages),
        state=lambda: [steps(page) for page in pages],
    )


def all_show(pages: Sequence[Page], *names: str) -> None:
    wait_until(
        lambda: all(shown(page) == sorted(names) for page in pages),
        state=lambda: [shown(page) for page in pages],
    )


def test_viewers_follow_a_presenter_and_steer_nothing(
    open_tab: Callable[..., Tab], open_page: Callable[..., Tab], server: Server
) -> None:
    presenter = open_tab(width=1920)
    presenter.page.set_viewport_size({"width": 1920, "height": 1080})
    new_tokens(presenter, TOKENS)
    presenter.start()
    finish(presenter)
    viewers = [open_page(390, 844), open_page(1280, 800)]
    for viewer in viewers:
        viewer.page.goto(f"{server.url}/?watch=1")
        expect(viewer.page.locator(".state[data-state=done]")).to_be_visible()
        expect(viewer.page.get_by_role("button", name="Present")).to_have_count(0)
    tabs = [presenter, *viewers]
    pages = [tab.page for tab in tabs]
    here, following = presenter.page, [viewer.page for viewer in viewers]

    here.locator(".opener").click()
    all_show(pages, "tokens")
    wait_until(lambda: "present=1" in here.evaluate("location.search"))
    here.keyboard.press("3")
    all_show(pages, "roofline")
    here.keyboard.press("Shift+Digit2")
    all_show(pages, "roofline", "mask")
    for page in pages:
        expect(page.locator(".idea")).to_contain_text("one more row")
    size, text = here.locator(".presented").evaluate(SMALLEST)
    assert size >= READABLE, text
    headline = here.locator(".figure .value").first
    assert headline.evaluate("(node) => node.getBoundingClientRect().height") > HEADLINE

    here.keyboard.press("PageUp")
    all_are_at(pages, TOKENS - 1)
    here.keyboard.press("ArrowLeft")
    all_are_at(pages, TOKENS - 2)
    here.keyboard.press("Space")
    all_are_at(pages, TOKENS - 1)
    here.keyboard.press("d")
    for page in pages:
        expect(page.locator(".presented")).to_have_attribute("data-light", "dark")

    box = here.locator(".panel-mask").bounding_box()
    assert box is not None
    here.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    for page in following:
        ring = page.locator(".panel-mask .ring")
        expect(ring).to_be_visible()
        assert ring.evaluate(RING) == pytest.approx([0.75, 0.25], abs=0.02)

    for page in following:
        page.keyboard.press("PageUp")
        expect(page.locator(".said")).to_contain_text("Only the presenter steps")
    assert [steps(page) for page in pages] == [TOKENS - 1] * 3

    here.keyboard.press("Escape")
    for page in following:
        expect(page.locator(".said")).to_contain_text("The presenter has left")
        expect(page.locator(".presented")).to_have_count(0)
    all_are_at(pages, TOKENS)
    wait_until(lambda: "present=1" not in here.evaluate("location.search"))
    assert [tab.complaints for tab in tabs] == [[], [], []]
