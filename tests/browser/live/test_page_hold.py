"""A run that is started on the page begins when that page is drawn, or a moment later anyway."""

from __future__ import annotations

import pytest
from playwright.sync_api import WebSocketRoute

from tests.browser.actions import OpenTab, finish, new_tokens
from tests.browser.conftest import Tab, wait_until

pytestmark = pytest.mark.browser

HELD = "starting when the page is quiet"
# Every word that stands for the run's state, in order.
NOTE_STATES = """(state) => {
  window.__states = [state.textContent];
  new MutationObserver(() => {
    if (window.__states.at(-1) !== state.textContent) window.__states.push(state.textContent);
  }).observe(state, { childList: true, characterData: true, subtree: true });
}"""
BUSY = """() => setInterval(() => {
  const end = performance.now() + 120;
  while (performance.now() < end) {}
}, 20)"""


def swallow_answers(socket: WebSocketRoute) -> None:
    """Let frames come and none of the page's answers go out, so that it never says it is quiet."""
    server = socket.connect_to_server()
    server.on_message(socket.send)
    socket.on_message(lambda _said: None)


def silent_tab(open_tab: OpenTab) -> Tab:
    tab = open_tab()
    tab.page.route_web_socket("**/live/run/**", swallow_answers)
    tab.page.reload()  # sockets that were there before are not routed
    tab.page.get_by_role("button", name="Start").wait_for()
    return tab


def test_the_wait_is_shown_and_ends_with_the_run(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Name three colours.")
    new_tokens(tab, 3)
    tab.start()
    finish(tab)
    tab.page.locator(".tbt .state").last.evaluate(NOTE_STATES)
    tab.start()
    finish(tab)

    states = tab.page.evaluate("window.__states")
    assert HELD in states
    assert states.index(HELD) < states.index("running")
    assert tab.panel().state == "done"
    assert tab.complaints == []


def test_a_run_begins_on_a_page_that_is_never_quiet(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.type_prompt("Name three colours.")
    new_tokens(tab, 3)
    tab.page.evaluate(BUSY)

    tab.start()
    finish(tab)

    assert tab.panel().state == "done"


def test_a_run_begins_whose_page_says_nothing_and_a_second_viewer_sees_it(
    open_tab: OpenTab,
) -> None:
    tab = silent_tab(open_tab)
    tab.type_prompt("Name three colours.")
    new_tokens(tab, 3)
    tab.start()

    second = open_tab(f"?run={tab.run_id}")
    finish(second)

    assert second.panel().state == "done"
    assert tab.panel().steps == 0


def test_a_hidden_tabs_run_begins(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => true })")
    tab.page.reload()
    tab.type_prompt("Name three colours.")
    new_tokens(tab, 3)

    tab.start()
    finish(tab)

    assert tab.panel().state == "done"


def test_stop_ends_a_run_while_it_waits(open_tab: OpenTab) -> None:
    tab = silent_tab(open_tab)
    tab.type_prompt("Tell me a long story about a lake.")
    new_tokens(tab, 2000)
    tab.start()
    wait_until(lambda: HELD in tab.page.locator(".tbt .state").last.inner_text())

    tab.press("Stop")
    second = open_tab(f"?run={tab.run_id}")
    finish(second)

    assert (second.panel().state, second.panel().steps) == ("stopped", 0)
