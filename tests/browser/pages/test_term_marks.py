"""Every term of the glossary that a page shows is marked there, with a card for each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import IS_DRAWN, finish, new_tokens
from tests.browser.conftest import Server, Tab, wait_until
from visuals.words.glossary import TERM_OF, terms_in

pytestmark = pytest.mark.browser

PATHS = (
    *("tour", "tour?step=batching", "", "compare", "roofline"),
    *("batching", "serving", "device", "runs", "check"),
)
# The texts that can be read on the page, each by itself: those of shadow roots too, without fields,
# code, links and buttons, charts' data, and what was written by others.
SHOWN = """() => {
  const parts = ["Text", "Alert", "Progress", "Header", "Sidebar", "Toast", "Code"];
  parts.push("DataFrame", "IconMaterial");
  const left = "script, style, textarea, input, select, code, pre, canvas, svg, button, a, " +
    "summary, [role=tab], [role=radio], [role=tooltip], [role=img], [translate=no], " +
    "[data-baseweb=select], label[data-baseweb], " +
    parts.map((name) => `[data-testid=st${name}]`).join(", ");
  const found = [];
  const walk = (parent) => {
    for (const child of parent.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) {
        const holder = child.parentElement;
        const { width, height } = holder.getBoundingClientRect();
        if (holder.checkVisibility() && width > 1 && height > 1) found.push(child.data);
      } else if (child.nodeType === Node.ELEMENT_NODE && !child.matches(left)) {
        walk(child.shadowRoot ?? child);
      }
    }
  };
  walk(document.body);
  return found;
}"""
# The terms that are marked: by what is painted, and by the keyboard's list.
MARKED = """() => {
  const hosts = [...document.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean);
  const bar = hosts.map((root) => root.querySelector(".term-bar")).find(Boolean);
  const sizes = ["term", "term-drawn"].map((name) => CSS.highlights.get(name)?.size ?? 0);
  const painted = sizes[0] + sizes[1];
  return { painted, keys: [...(bar?.children ?? [])].map((button) => button.dataset.term) };
}"""
# Of each term: what its card says on focus, and whether Escape has closed it.
OPENED = """() => {
  const hosts = [...document.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean);
  const root = hosts.find((one) => one.querySelector(".term-bar"));
  const card = root.querySelector(".term-card");
  return [...root.querySelectorAll(".term-bar button")].map((button) => {
    button.focus();
    const said = card.matches(":popover-open") ? card.innerText : "";
    const { left, top, right, bottom } = card.getBoundingClientRect();
    const isWhole = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    const escape = { key: "Escape", bubbles: true, composed: true };
    button.dispatchEvent(new KeyboardEvent("keydown", escape));
    const isClosed = !card.matches(":popover-open");
    button.blur();
    return { key: button.dataset.term, said, isWhole, isClosed };
  });
}"""
# Where terms are marked in what the prompt and the model say.
IN_THEIRS = """() => [...CSS.highlights.get("term")]
  .map((range) => range.startContainer.parentElement)
  .filter((node) => node.closest(".tok, .text, .tip, textarea, [translate=no]"))
  .map((node) => node.textContent)"""
PROMPT = "Prefill, decode, TTFT and the K/V cache: tell me of each token and layer."


def wait_for_marks(page: Page) -> None:
    """Wait until all terms that can be read on the page are marked, and none else in its texts."""

    def missing() -> set[str]:
        if not page.evaluate(IS_DRAWN):
            return {"not drawn"}
        shown = {term.key for text in page.evaluate(SHOWN) for term in terms_in(text)}
        return shown - set(page.evaluate(MARKED)["keys"]) if shown else {"no term"}

    wait_until(lambda: not missing(), state=lambda: f"{page.url}: {missing()}")


def check_cards(page: Page) -> None:
    """Check that every mark is painted and has its card, which opens whole and closes."""
    marked = page.evaluate(MARKED)
    opened = page.evaluate(OPENED)

    assert marked["painted"] == len(marked["keys"]) == len(opened)
    for card in opened:
        term = TERM_OF[card["key"]]
        assert term.title in card["said"], card
        assert term.sentence in card["said"], card
        assert "Tour: " in card["said"], card
        assert card["isWhole"], card
        assert card["isClosed"], card


def test_every_term_of_every_page_is_marked_and_its_card_opens_and_closes(
    open_page: Callable[..., Tab], server: Server
) -> None:
    tab = open_page()
    for path in PATHS:
        tab.page.goto(f"{server.url}/{path}")
        tab.page.get_by_test_id("stMainBlockContainer").wait_for()
        wait_for_marks(tab.page)
        check_cards(tab.page)
        for other in tab.page.get_by_test_id("stTab").all()[1:]:
            other.click()
            wait_for_marks(tab.page)
            check_cards(tab.page)
    assert tab.complaints == []


def test_a_runs_terms_are_marked_with_its_numbers_and_its_texts_never(
    open_tab: Callable[..., Tab],
) -> None:
    tab = open_tab()
    page = tab.page
    tab.type_prompt(PROMPT)
    new_tokens(tab, 4)
    tab.start()
    finish(tab)
    wait_for_marks(page)
    check_cards(page)
    assert page.evaluate(IN_THEIRS) == []

    label = page.locator(".figure-ttft .label")
    page.mouse.move(1, 1)
    label.hover(position={"x": 20, "y": 8})
    card = page.locator(".term-card")
    expect(card).to_contain_text("How long a request takes")
    value = page.locator(".figure-ttft .value").inner_text()
    expect(card).to_contain_text(f"In this run: {value} ms")
    expect(card.locator("a")).to_have_attribute("href", f"{origin(page)}/tour?step=forward-pass")
    expect(page.locator(".tip")).to_be_hidden()  # the figure's own
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()

    label.click(position={"x": 20, "y": 8})  # as a tap does
    expect(card).to_contain_text("How long a request takes")
    page.get_by_role("heading", name="Roofline").click(position={"x": 1, "y": 1})
    assert tab.complaints == []


def test_the_keyboard_goes_from_term_to_term_and_on_to_the_tour(
    open_tab: Callable[..., Tab],
) -> None:
    tab = open_tab("", 390)
    page = tab.page
    wait_for_marks(page)
    keys = page.evaluate(MARKED)["keys"]
    card = page.locator(".term-card")
    page.locator(".term-bar button").first.focus()
    expect(card).to_contain_text(TERM_OF[keys[0]].sentence)

    page.keyboard.press("ArrowRight")
    expect(card).to_contain_text(TERM_OF[keys[1]].sentence)
    page.keyboard.press("End")
    expect(card).to_contain_text(TERM_OF[keys[-1]].sentence)
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.keyboard.press("Enter")
    expect(card).to_contain_text(TERM_OF[keys[-1]].sentence)
    page.keyboard.press("Tab")
    expect(card.locator("a")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card).to_be_hidden()
    assert tab.complaints == []


def origin(page: Page) -> str:
    """Return where the server is."""
    return str(page.evaluate("location.origin"))
