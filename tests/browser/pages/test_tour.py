"""The tour in a browser: all of it by keyboard, and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.actions import fit_every_width
from tests.browser.conftest import Server, Tab, wait_until
from visuals.tour.chapters import CHAPTERS, Chapter
from visuals.tour.texts import FINISHED, TEXTS

pytestmark = pytest.mark.browser

MOST_TABS = 80  # from the top of the page to its end
MOST_TRIES = 3  # more than there are options
PHONE = {"width": 390, "height": 844}
FOCUSED = "selector => document.activeElement?.closest(selector) !== null"


def open_chapter(tab: Tab, server: Server, slug: str) -> None:
    tab.page.goto(f"{server.url}/tour?step={slug}")
    wait_for_question(tab, slug)


def wait_for_question(tab: Tab, slug: str) -> None:
    """Wait until the chapter's question is there, which follows from a run made here."""
    expect(tab.page.get_by_role("button", name="Run again")).to_be_visible()
    expect(tab.page.locator(f".st-key-tour-check-{slug} button")).to_be_visible()


def tab_to(tab: Tab, selector: str) -> None:
    """Move the focus there with the Tab key alone."""
    for _ in range(MOST_TABS):
        if tab.page.evaluate(FOCUSED, selector):
            return
        tab.page.keyboard.press("Tab")
    pytest.fail(f"the Tab key does not lead to {selector}")


def verdict(tab: Tab) -> str:
    """Return what the page says of the answer."""
    alert = tab.page.get_by_test_id("stForm").get_by_test_id("stAlert")
    return alert.get_by_test_id("stMarkdownContainer").last.inner_text()


def give(tab: Tab, chapter: Chapter, answer: str) -> str:
    """Answer by keyboard, and return what is said of it once it has been judged."""
    before = tab.page.get_by_test_id("stForm").inner_text()
    field = f".st-key-tour-answer-{chapter.slug}"
    tab_to(tab, f"{field} input")
    if tab.page.locator(f"{field} input[type=radio]").count():
        tab.page.keyboard.press("ArrowRight" if answer == "next" else "Space")
        tab_to(tab, f".st-key-tour-check-{chapter.slug} button")
    else:
        tab.page.keyboard.press("Control+A")
        tab.page.keyboard.type(answer)
    tab.page.keyboard.press("Enter")
    judged = tab.page.get_by_test_id("stForm").get_by_test_id("stAlert")
    expect(judged).to_be_visible()
    form = tab.page.get_by_test_id("stForm")
    focused = "document.activeElement?.outerHTML.slice(0, 200)"
    wait_until(
        lambda: form.inner_text() != before,
        state=lambda: (
            f"{answer!r} was given; {before!r} stays; focus: {tab.page.evaluate(focused)}"
        ),
    )
    return verdict(tab)


def answer_by_keyboard(tab: Tab, chapter: Chapter) -> None:
    """Answer wrongly first, and then what the explanation says."""
    field = f".st-key-tour-answer-{chapter.slug}"
    tab.page.locator(f"{field} input").first.wait_for()  # drawn after the question's frame
    has_options = tab.page.locator(f"{field} input[type=radio]").count()
    said = give(tab, chapter, "first" if has_options else "1")
    for _ in range(MOST_TRIES):
        if said.startswith("Right:"):
            return
        assert said.startswith("Not quite")
        [*_, number] = re.findall(r"(?:=|:) ([\d,]+)\b", said) or [""]
        said = give(tab, chapter, "next" if has_options else number.replace(",", ""))
    pytest.fail(f"no answer was right; the last was told: {said}")


def test_the_whole_tour_can_be_taken_with_the_keyboard_alone(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    open_chapter(tab, server, CHAPTERS[0].slug)

    for number, chapter in enumerate(CHAPTERS, start=1):
        title = f"{number} of 7: {TEXTS[chapter.slug].title}"
        expect(tab.page.get_by_role("heading", name=title)).to_be_visible()
        wait_for_question(tab, chapter.slug)
        answer_by_keyboard(tab, chapter)
        if number < len(CHAPTERS):
            tab_to(tab, ".st-key-tour-on button")
            tab.page.keyboard.press("Enter")

    expect(tab.page.get_by_text(FINISHED)).to_be_visible()
    asked = parse_qs(urlsplit(tab.page.evaluate("location.href")).query)
    assert asked == {"step": ["context"], "done": [",".join(one.slug for one in CHAPTERS)]}
    assert tab.complaints == []


def test_the_tour_is_taken_up_again_where_it_was_left(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    open_chapter(tab, server, "mask")
    answer_by_keyboard(tab, CHAPTERS[2])

    tab.page.get_by_role("link", name="Device").first.click()
    expect(tab.page.get_by_role("heading", name="3 of 7")).to_have_count(0)
    tab.page.get_by_role("link", name="Tour").first.click()

    expect(tab.page.get_by_role("heading", name="3 of 7: The mask")).to_be_visible()
    expect(tab.page.get_by_text("1 of 7 questions answered")).to_be_visible()
    tab.page.reload()
    expect(tab.page.get_by_text("1 of 7 questions answered")).to_be_visible()
    wait_for_question(tab, "mask")  # of a run made anew: before that the page is still being built
    tab.page.keyboard.press("n")
    expect(tab.page.get_by_role("heading", name="4 of 7: Weight reuse")).to_be_visible()
    tab.page.keyboard.press("b")
    expect(tab.page.get_by_role("heading", name="3 of 7: The mask")).to_be_visible()
    assert tab.complaints == []


def test_every_chapter_fits_a_phone_and_shows_its_picture(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    for chapter in CHAPTERS:
        open_chapter(tab, server, chapter.slug)
        fit_every_width(tab, (PHONE["width"], 1280, PHONE["width"]))
        names = [f".panel-{name}" for name in chapter.panels] or [
            ".st-key-tour-batches, .vega-embed"
        ]
        for name in names:
            picture = tab.page.locator(name).first
            picture.scroll_into_view_if_needed()
            expect(picture).to_be_visible()
        expect(tab.page.locator(".tbt .panel")).to_have_count(len(chapter.panels))

    open_chapter(tab, server, "forward-pass")
    tab.page.set_viewport_size({**PHONE})
    tab.page.get_by_role("radio", name="it twice").click()
    expect(tab.page.get_by_text("What changed")).to_be_visible()
    fit_every_width(tab, (PHONE["width"],))
    assert tab.complaints == []
