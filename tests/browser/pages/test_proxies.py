"""README's ways to a room: nginx with TLS under a path of its own, and an SSH tunnel."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.conftest import Server, Tab, running_app
from tests.debian_nginx import README, Proxy, nginx_before

pytestmark = pytest.mark.browser

KEY = "correct-horse-battery"
STARTED = re.compile(
    r"`TOKEN_BY_TOKEN_HOSTS=(\S+) TOKEN_BY_TOKEN_KEY_FILE=\S+ make run PROXIES=(\S+)`"
)
TUNNEL = re.compile(r"`ssh -L (\d+):(\S+):(\d+) \S+`")
MORE_THAN_NGINX_TAKES_UNASKED = 2 << 20


def answered(
    proxy: Proxy, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.request(
        method, proxy.url + path, content=body, headers=named, verify=proxy.trust, timeout=60
    )


def test_a_run_through_nginx_with_tls_under_a_path_of_its_own(
    browser: Browser, default_model_folder: Path, tmp_path: Path
) -> None:
    assert default_model_folder.is_dir()
    started = STARTED.search(README)
    assert started is not None
    (tmp_path / "key.txt").write_text(f"{KEY}\n", encoding="utf-8")
    with (
        running_app(
            tmp_path,
            TOKEN_BY_TOKEN_HOSTS=started[1],
            TOKEN_BY_TOKEN_KEY_FILE=str(tmp_path / "key.txt"),
            FORWARDED_ALLOW_IPS=started[2],
        ) as server,
        nginx_before(server.url, tmp_path) as proxy,
    ):
        assert answered(proxy, "/").status_code == 403
        # What a browser says of its own connection does not reach the app.
        admitted = answered(proxy, f"/compare?key={KEY}", X_Forwarded_Proto="http")
        assert (admitted.status_code, admitted.headers["location"]) == (303, "./compare")
        assert "Secure" in admitted.headers["set-cookie"]
        cookie = admitted.headers["set-cookie"].partition(";")[0]
        forgery = answered(proxy, "/_stcore/health", Cookie=cookie).headers["set-cookie"]
        mark = forgery.partition(";")[0]
        upload = answered(
            proxy,
            "/_stcore/upload_file/a/b",
            "PUT",
            b"0" * MORE_THAN_NGINX_TAKES_UNASKED,
            Cookie=f"{cookie}; {mark}",
            X_Xsrftoken=mark.partition("=")[2],
        )
        assert upload.status_code == 400, "it comes to Streamlit, which has no such session"

        context = browser.new_context(ignore_https_errors=True)
        try:
            tab = Tab(context.new_page())
            tab.listen()
            sockets: list[str] = []
            tab.page.on("websocket", lambda opened: sockets.append(opened.url))
            tab.page.goto(f"{proxy.url}/?key={KEY}")
            tab.press("Start")
            expect(tab.page).to_have_url(re.compile(r"[?&]run="))
            expect(tab.page.locator(".state[data-state=done]")).to_be_visible()
            assert tab.page.url.startswith(f"{proxy.url}/?run=")
            secure = proxy.url.replace("https", "wss")
            assert all(one.startswith(f"{secure}/") for one in sockets)
            assert {urlsplit(one).path.rpartition("/")[0] for one in sockets} >= {
                "/tokens/_stcore",
                "/tokens/live",
                "/tokens/live/run",
            }
            (kept,) = [one for one in context.cookies() if "token-by-token" in one.get("name", "")]
            assert kept.get("path") == "/tokens"
            assert kept.get("secure")
            assert kept.get("httpOnly")
            assert tab.complaints == []
        finally:
            context.close()
        for log in proxy.logs.iterdir():
            assert KEY not in log.read_text(encoding="utf-8", errors="replace"), log.name
        assert KEY not in server.log


@contextmanager
def forwarded(port: int) -> Generator[int]:
    """Yield a port of this machine that leads to another, as `ssh -L` has it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, port: int) -> None:
    with suppress(OSError):  # closed: the test is over
        while True:
            near, _ = listener.accept()
            threading.Thread(target=_join, args=(near, port), daemon=True).start()


def _join(near: socket.socket, port: int) -> None:
    with near, socket.create_connection(("127.0.0.1", port)) as far:
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_through_an_ssh_tunnel_needs_no_key(
    open_page: Callable[..., Tab], server: Server, host: str
) -> None:
    tunnel = TUNNEL.search(README)
    assert tunnel is not None
    assert tunnel[2] == urlsplit(server.url).hostname
    with forwarded(int(urlsplit(server.url).port or 0)) as port:
        tab = open_page()
        tab.page.goto(f"http://{host}:{port}")
        expect(tab.page.get_by_test_id("stApp")).to_have_attribute(
            "data-test-connection-state", "CONNECTED"
        )
        expect(tab.page.get_by_role("button", name="Start")).to_be_visible()
        assert tab.complaints == []


@pytest.fixture(autouse=True)
def _patience(context: BrowserContext) -> None:
    assert context.browser is not None  # its fixture sets how long everything waits
