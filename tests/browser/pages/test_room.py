"""The server for a room: nothing without a key, a page to operate, a page to watch."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.browser.conftest import PATIENCE_S, Server, running_app, wait_until
from visuals.panel.page_client import PageClient
from visuals.panel.room_bench import cookie_of

pytestmark = pytest.mark.browser

LINK = re.compile(r"\?key=(\S+)")
PATHS = (
    *("/", "/compare", "/runs", "/live/engine", "/live/check", "/_stcore/health"),
    *("/_stcore/host-config", "/static/index.html", "/favicon.png", "/media/none", "/no-such"),
)


def status_of(url: str, method: str = "GET") -> int:
    try:
        with urlopen(Request(url, method=method), timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def opened(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    return page


async def takes_over(url: str, operate: str, watch: str) -> None:
    """Try to go on with the session of an operator as somebody who may watch."""
    operator = PageClient(url, cookie_of(url, operate))
    await operator.open()
    await operator.until(lambda: "start" in operator.buttons and bool(operator.seen.run_id))
    same = PageClient(url, operator.cookie, session=operator.session)
    before = operator.seen.run_id
    watcher = PageClient(url, cookie_of(url, watch), session=operator.session)
    await watcher.open()
    await watcher.press_id(operator.buttons["start"])
    await watcher.until(lambda: watcher.scripts > 1)

    assert watcher.session != operator.session
    assert watcher.buttons == {}
    assert operator.complaints == []
    assert operator.seen.run_id == before
    await watcher.close()
    await operator.close()
    await same.open()
    assert same.session == operator.session, "nobody could go on with a session of their own"
    await same.close()


def opens(url: str, cookie: str, **headers: str) -> bool:
    """Tell whether Streamlit's own socket is opened."""
    address = f"{url.replace('http', 'ws')}/_stcore/stream"
    try:
        with connect(address, additional_headers={"Cookie": cookie, **headers}):
            return True
    except InvalidStatus:
        return False


def test_a_room_needs_a_key_and_watchers_press_nothing(
    browser: Browser, default_model_folder: Path, tmp_path: Path
) -> None:
    assert default_model_folder.is_dir()
    with running_app(tmp_path, address="0.0.0.0") as server:
        wait_until(lambda: len(LINK.findall(server.log)) == 2, PATIENCE_S, lambda: server.log)
        operate, watch = LINK.findall(server.log)
        for path in PATHS:
            assert status_of(server.url + path) == 403, path
        assert status_of(f"{server.url}/_stcore/upload_file/a/b", "PUT") == 403
        assert status_of(f"{server.url}/?key=wrong-wrong-wrong") == 403

        operator, watcher = browser.new_context(), browser.new_context()
        try:
            at_work = opened(operator, f"{server.url}/?key={operate}")
            at_work.get_by_role("button", name="Start").click()
            expect(at_work).to_have_url(re.compile(r"[?&]run="))
            expect(at_work.locator(".state[data-state=done]")).to_be_visible()
            assert "key=" not in at_work.url
            assert operate not in at_work.content()
            assert operate not in str(operator.cookies())
            assert at_work.evaluate("document.cookie").find("token-by-token") < 0

            watching = opened(watcher, f"{server.url}/?key={watch}")
            expect(watching.get_by_text("You are watching.")).to_be_visible()
            expect(watching.locator(".state[data-state=done]")).to_be_visible()
            expect(watching.get_by_role("button", name="Start")).to_have_count(0)
            watching.goto(f"{server.url}/compare")
            expect(watching.get_by_text("You are watching.")).to_be_visible()
            at_work.locator(".opener").click()
            expect(watching.locator(".presented .panel-tokens.shown")).to_be_visible()
            at_work.keyboard.press("v")
            expect(at_work.locator(".card .address")).to_contain_text(f"key={watch}&watch=1")
            expect(at_work.locator(".card canvas.code")).to_be_visible()
            watching.keyboard.press("PageUp")
            expect(watching.locator(".said")).to_contain_text("Only the presenter steps")
            put = watching.evaluate(
                "fetch('/_stcore/upload_file/a/b', {method: 'PUT'}).then(a => a.status)"
            )
            assert put == 403
        finally:
            operator.close()
            watcher.close()
        # On a thread, since the browser's driver has this one's event loop.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(lambda: asyncio.run(takes_over(server.url, operate, watch))).result()
        cookie = cookie_of(server.url, operate)
        assert opens(server.url, cookie, Origin=server.url)
        for stranger in ({}, {"Origin": "http://127.0.0.1:3000"}, {"Origin": "http://localhost"}):
            assert not opens(server.url, cookie, **stranger)
        assert not opens(server.url, "", Origin=server.url)
        # No proxy was named, so what a request says of itself is not believed.
        forged = {"X-Forwarded-Proto": "https"}
        admitted = httpx2.get(f"{server.url}/?key={operate}", headers=forged, timeout=30)
        assert "Secure" not in admitted.headers["set-cookie"]
        assert sum(operate in line for line in server.log.splitlines()) == 1
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or operate.encode() not in path.read_bytes()


def test_a_key_of_the_users_own_is_never_printed(
    default_model_folder: Path, tmp_path: Path
) -> None:
    assert default_model_folder.is_dir()
    with running_app(tmp_path, TOKEN_BY_TOKEN_KEY="correct-horse-battery") as server:
        wait_until(lambda: "To watch only" in server.log, PATIENCE_S, lambda: server.log)
        assert status_of(server.url) == 403
        assert status_of(f"{server.url}/?key=correct-horse-battery") == 403  # without its cookie
        assert "correct-horse-battery" not in server.log


@pytest.fixture(autouse=True)
def _patience(context: BrowserContext) -> None:
    assert context.browser is not None  # its fixture sets how long everything waits


def test_on_loopback_nobody_is_asked(server: Server) -> None:
    assert status_of(server.url) == 200
    assert "?key=" not in server.log
