"""The panel's scripts in a real browser: behind a prefix, and where something does not come."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from tests.browser.conftest import Server, Tab, wait_until
from tests.browser.prefix_proxy import proxied

pytestmark = pytest.mark.browser

OpenTab = Callable[..., Tab]
RECORDED_TIMEOUT_MS = 60_000


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    made = context.new_page()
    made.set_viewport_size({"width": 1280, "height": 800})
    yield made
    made.close()


def recorded_run_is_drawn(page: Page) -> None:
    expect(page.locator(".state[data-state=done]")).to_be_visible(timeout=RECORDED_TIMEOUT_MS)
    expect(page.locator(".panel-next canvas")).to_be_visible(timeout=RECORDED_TIMEOUT_MS)


@pytest.mark.parametrize("path", ["/", "/runs"])
def test_behind_a_proxys_prefix_the_panel_finds_its_scripts_and_its_run(
    page: Page, server: Server, path: str
) -> None:
    """Every address began at the host's root, whatever stood before the page's."""
    with proxied(server.url, "/behind/a/proxy") as url:
        sockets: list[str] = []
        page.on("websocket", lambda opened: sockets.append(opened.url))
        page.goto(f"{url}{path}")
        if path != "/":
            page.get_by_role("link", name="Live").first.click()

        recorded_run_is_drawn(page)

    live = [address for address in sockets if "/live/run/" in address]
    assert live
    assert all("/behind/a/proxy/live/run/" in address for address in live)


def test_scripts_that_do_not_come_are_said_and_fetched_again(page: Page, server: Server) -> None:
    page.route("**/live/panel/*/0/*.js", lambda route: route.abort())
    page.goto(server.url)

    expect(page.get_by_text("The live panel could not be loaded; trying again")).to_be_visible(
        timeout=RECORDED_TIMEOUT_MS
    )
    recorded_run_is_drawn(page)
    expect(page.get_by_text("could not be loaded")).to_have_count(0)


def test_a_chart_library_that_does_not_come_is_said_and_fetched_again(
    page: Page, server: Server
) -> None:
    page.route("**/live/vega/*.js", lambda route: route.abort())
    page.goto(server.url)

    said = page.get_by_text("The charts could not be loaded; trying again.")
    expect(said).to_be_visible(timeout=RECORDED_TIMEOUT_MS)
    page.route("**/live/vega/*.js?try=*", lambda route: route.continue_())
    recorded_run_is_drawn(page)
    expect(said).to_be_hidden()


def test_a_panel_that_throws_says_so_and_the_others_are_drawn(page: Page, server: Server) -> None:
    def broken(route: Route) -> None:
        script = route.fetch().text()
        route.fulfill(
            body=script.replace(
                "  update(frame) {", '  update(frame) {\n    throw new Error("x");'
            ),
            content_type="text/javascript",
        )

    page.route("**/live/panel/*/*/roofline.js", broken)
    page.goto(server.url)

    recorded_run_is_drawn(page)
    expect(page.locator(".panel-roofline .broken")).to_be_visible()
    expect(page.locator(".broken:visible")).to_have_count(1)


def test_once_a_socket_works_again_the_page_stops_feeding_the_panel(open_tab: OpenTab) -> None:
    """It was never tried again: the page went on handing over two frames a second for good."""
    tab = open_tab()
    is_down = [True]
    frames: list[str | bytes] = []

    def opened(socket: WebSocketRoute) -> None:
        if is_down[0]:
            socket.close()
            return
        server = socket.connect_to_server()
        server.on_message(lambda message: (frames.append(message), socket.send(message)))

    tab.page.route_web_socket("**/live/run/**", opened)
    tab.page.reload()  # sockets that were there before are not cut off
    tab.type_prompt("Count to ten.")
    tab.start("Step")
    tab.wait_for(lambda panel: panel.steps == 1 and panel.state == "paused")

    is_down[0] = False
    wait_until(lambda: (tab.page.wait_for_timeout(50), len(frames) > 0)[1], 90)
    tab.press("Step")
    tab.wait_for(lambda panel: panel.steps == 2)

    assert len(frames) > 1
    tab.page.get_by_role("button", name="weights", exact=True).click()
    expect(tab.page.get_by_text("which this connection does not have")).to_have_count(0)
    tab.press("Stop")
    tab.wait_for(lambda panel: panel.state == "stopped")
