"""Who gets in with which key, and what a watcher cannot do."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from hashlib import sha256
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from inference.records.errors import InputError
from visuals.live import access
from visuals.live.access import (
    STRETCHING,
    VISITOR_HEADER,
    AccessGate,
    AccessKeys,
    is_loopback,
    keys_for,
    links,
    may_operate,
)
from visuals.live.key_attempts import LONGEST_WAIT_S, WAITING_AT_MOST

KEY = "correct-horse-battery"
KEYS = AccessKeys(KEY)


async def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"ours {may_operate(request.scope)} {request.url.query}")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(str(may_operate(socket.scope)))
    await socket.send_json(socket.headers.getlist(VISITOR_HEADER.decode()))
    await socket.close()


class Waits:
    """The waits that a gate asked for, which take no time here."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def client(
    keys: AccessKeys | None = KEYS, waits: Waits | None = None, base: str = "http://testserver"
) -> TestClient:
    app = Starlette(
        routes=[
            Route("/", _page, methods=["GET", "PUT", "POST", "DELETE"]),
            Route("/compare", _page),
            WebSocketRoute("/live", _socket),
        ],
        middleware=[Middleware(AccessGate, keys=keys, sleep=waits or Waits())],
    )
    return TestClient(app, base_url=base)


def test_without_a_key_nothing_is_answered() -> None:
    visitor = client()

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"):
        for path in ("/", "/compare", "/no-such-page", "/_stcore/health"):
            answer = visitor.request(method, path)
            assert answer.status_code == 403
            assert "ours" not in answer.text
    page = visitor.get("/").text
    assert "asks for an access key" in page
    assert "Open the link that was printed" in page
    assert KEY not in page
    assert KEYS.watch not in page
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect("/live"):
        pass


def test_a_link_brings_a_cookie_and_loses_the_key_on_the_way() -> None:
    visitor = client()

    first = visitor.get(f"/compare?key={KEY}&runs=a%26b", follow_redirects=False)

    assert first.status_code == 303
    assert first.headers["location"] == "./compare?runs=a%26b"
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "no-referrer"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert "Path" not in cookie, "another page of the same host has it too"
    assert KEY not in cookie
    assert visitor.get("/compare?runs=a").text == "ours True runs=a"
    assert visitor.put("/").status_code == 200
    with visitor.websocket_connect("/live") as socket:
        assert socket.receive_text() == "True"


def test_a_link_leads_back_to_this_server_only() -> None:
    visitor = client()

    for path in ("//evil.example", "/%5Cevil.example", "/%2F%2Fevil.example", "/a/https:evil"):
        answer = visitor.get(f"http://testserver{path}?key={KEY}", follow_redirects=False)
        assert answer.headers["location"].startswith("./")
        assert urlsplit(answer.headers["location"]).netloc == ""


def test_over_https_the_cookie_is_for_https_only() -> None:
    answer = client(base="https://testserver").get(f"/?key={KEY}", follow_redirects=False)

    assert "Secure" in answer.headers["set-cookie"]


def test_a_watcher_reads_and_changes_nothing() -> None:
    watcher = client()

    assert watcher.get(f"/?key={KEYS.watch}").text == "ours False "
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        answer = watcher.request(method, "/")
        assert answer.status_code == 403
        assert "for watching only" in answer.text
    with watcher.websocket_connect("/live") as socket:
        assert socket.receive_text() == "False"


def test_the_key_to_watch_gives_nobody_the_key_to_operate() -> None:
    assert AccessKeys(KEYS.watch).watch != KEY
    watching = KEYS.cookie_for(access.Role.WATCH)
    assert KEYS.role_of_cookies({KEYS.cookie: watching}) is access.Role.WATCH
    visitor, _, proof = watching.partition(".")
    for forged in (
        f"{visitor}x.{proof}",
        f"{visitor}.{proof[:-1]}",
        f".{proof}",
        visitor,
        KEY,
        "",
        f"{visitor}.\u00e9",
    ):
        assert KEYS.role_of_cookies({KEYS.cookie: forged}) is None
    other = AccessKeys("another-key-of-a-server")
    assert other.cookie != KEYS.cookie
    assert other.role_of_cookies({other.cookie: watching}) is None


def test_a_link_that_is_opened_again_leaves_the_visitor_who_they_are() -> None:
    """Each opening made another visitor, with all limits anew."""
    visitor = client()
    names: list[str] = []
    for key in (KEY, KEY, KEYS.watch, KEY):
        cookie = visitor.get(f"/?key={key}", follow_redirects=False).headers["set-cookie"]
        value = SimpleCookie(cookie)[KEYS.cookie].value
        names.append(KEYS.visitor_of({KEYS.cookie: value}))
        is_operator = key == KEY
        assert (KEYS.role_of_cookies({KEYS.cookie: value}) is access.Role.OPERATE) is is_operator

    assert len(set(names)) == 1
    assert names[0]
    elsewhere = client().get(f"/?key={KEY}", follow_redirects=False).headers["set-cookie"]
    assert names[0] not in elsewhere


def test_a_session_is_told_whose_it_is_and_nobody_can_say_so_themselves() -> None:
    """Streamlit resumes a session for whoever names it, unless its visitor is another one."""
    visitor = client()
    visitor.get(f"/?key={KEYS.watch}")
    name = KEYS.visitor_of(dict(visitor.cookies))
    forged = {VISITOR_HEADER.decode(): f"operate {name}"}

    with visitor.websocket_connect("/live", headers=forged) as socket:
        socket.receive_text()
        assert socket.receive_json() == [f"watch {name}"]


def test_wrong_keys_are_slowed_down_and_cookies_are_not() -> None:
    waits = Waits()
    visitor = client(waits=waits)
    visitor.get(f"/?key={KEY}")

    for _ in range(7):
        answer = visitor.get("/?key=guess")
        assert answer.status_code == 403
        assert "not the key" in answer.text
        assert "guess" not in answer.text
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_WAIT_S]
    assert visitor.get("/").status_code == 200
    assert len(waits.seconds) == 6


class Held:
    """Waits that take as long as the test wants."""

    def __init__(self) -> None:
        self.waiting = 0
        self.is_over = threading.Event()

    async def __call__(self, _seconds: float) -> None:
        self.waiting += 1
        while not self.is_over.is_set():
            await asyncio.sleep(0.01)


async def _asked(gate: AccessGate, key: str, host: str) -> int:
    """Return how a key that comes from an address is answered."""
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": f"key={key}".encode(),
        "headers": [(b"host", b"testserver")],
        "client": (host, 1),
    }
    await gate(scope, receive, send)
    return statuses[0]


def test_many_guesses_at_a_time_are_no_faster_and_lock_nobody_out_elsewhere() -> None:
    """Beyond sixteen at a time each wrong key was answered at once, and so was a right one."""

    async def attack() -> None:
        held = Held()
        gate = AccessGate(Starlette(), keys=KEYS, sleep=held)
        attacker = "2001:db8::1"
        assert await _asked(gate, "guess", attacker) == 403
        guesses = [
            asyncio.create_task(_asked(gate, "guess", f"2001:db8::{number:x}"))
            for number in range(2, 2 + WAITING_AT_MOST)
        ]
        while held.waiting < WAITING_AT_MOST:
            await asyncio.sleep(0.01)
        for key in ("guess", KEY):
            assert await _asked(gate, key, attacker) == 429, "a right guess would be told"
        assert await _asked(gate, KEY, "192.0.2.7") == 303
        held.is_over.set()
        assert await asyncio.gather(*guesses) == [403] * WAITING_AT_MOST
        assert await _asked(gate, KEY, attacker) == 303

    asyncio.run(attack())


def test_who_may_watch_cannot_try_keys_quickly_at_home() -> None:
    """The key to watch was one HMAC of the other: a user's own could be guessed from it."""
    assert 128 * STRETCHING["n"] * STRETCHING["r"] >= 32 << 20  # bytes of memory for each try
    assert KEYS.watch != hmac.new(KEY.encode(), b"token-by-token watch", sha256).hexdigest()


def test_on_loopback_nobody_is_asked_and_elsewhere_everybody() -> None:
    for address in ("127.0.0.1", "localhost", "::1", "[::1]", "127.1.2.3"):
        assert is_loopback(address)
        assert keys_for(address, {}) is None
    for address in ("", "0.0.0.0", "::", "192.168.1.7", "lab.example", "localhost.example"):
        assert not is_loopback(address)
        made, again = keys_for(address, {}), keys_for(address, {})
        assert made is not None
        assert again is not None
        assert len(made.operate) >= 32
        assert made.operate != again.operate
    assert client(keys=None).get("/").text == "ours True "


@pytest.mark.parametrize(
    ("variables", "is_asked"),
    [
        ({"FORWARDED_ALLOW_IPS": ""}, False),
        ({"FORWARDED_ALLOW_IPS": "127.0.0.1"}, True),
        ({"TOKEN_BY_TOKEN_HOSTS": "localhost, 127.0.0.1,"}, False),
        ({"TOKEN_BY_TOKEN_HOSTS": "lab.example"}, True),
    ],
)
def test_a_loopback_address_that_others_reach_through_a_proxy_needs_a_key(
    variables: dict[str, str], is_asked: bool
) -> None:
    """A proxy before 127.0.0.1 let everybody operate."""
    assert (keys_for("127.0.0.1", dict(variables)) is not None) is is_asked


def test_a_key_is_taken_from_a_variable_or_a_file(tmp_path: Path) -> None:
    variables = {"TOKEN_BY_TOKEN_KEY": KEY, "OTHER": "1"}
    given = keys_for("127.0.0.1", variables)
    assert given is not None
    assert given.operate == KEY
    assert variables == {"OTHER": "1"}, "a process that is started inherits the key"

    path = tmp_path / "key"
    path.write_text(f"{KEY}\n", encoding="utf-8")
    of_file = keys_for("0.0.0.0", {"TOKEN_BY_TOKEN_KEY_FILE": str(path)})
    assert of_file is not None
    assert of_file.operate == KEY

    for bad in ("short", "sixteen but spaced", "\u00e9" * 20):
        with pytest.raises(InputError, match="16 to 256"):
            keys_for("0.0.0.0", {"TOKEN_BY_TOKEN_KEY": bad})
    path.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="16 to 256"):
        keys_for("127.0.0.1", {"TOKEN_BY_TOKEN_KEY_FILE": str(path)})
    with pytest.raises(InputError, match="cannot be read"):
        keys_for("0.0.0.0", {"TOKEN_BY_TOKEN_KEY_FILE": str(tmp_path / "none")})


def test_the_links_show_a_key_that_was_made_and_never_one_that_was_given() -> None:
    made = links(KEYS, "http://10.0.0.2:8501")
    assert f"http://10.0.0.2:8501/?key={KEY}" in made
    assert f"http://10.0.0.2:8501/?key={KEYS.watch}" in made

    given = links(AccessKeys(KEY, is_given=True), "http://10.0.0.2:8501")
    assert KEY not in given
    assert f"key={KEYS.watch}" in given
    assert KEY not in json.dumps(KEYS.cookie)
