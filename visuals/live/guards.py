"""What every answer of the server goes through: whom it answers, and what its pages may load.

A page of another site can have its own name lead to this machine and then reads as if it were ours
(DNS rebinding), so a request has to name a host that is known here. A page from another port of
this very machine is of another origin to a browser, which still sends it our cookie, so what a page
asks has to come from ours. And whatever gets into a page can load and send nothing beyond this
server, since the browser is told so.
"""

from __future__ import annotations

import os
import re
import socket
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visuals.live.page_addresses import SCRIPT

HOSTS_VARIABLE = "TOKEN_BY_TOKEN_HOSTS"
LOOPBACK_NAME = "localhost"
ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104  compared with; nothing binds here
MISDIRECTED = 421  # RFC 9110, section 15.5.20
REFUSED = 1008  # policy violation, RFC 6455 section 7.4.1
SHOWN_HOST = 60
# What else a Host header holds would get into the policy, and be read another way elsewhere:
# urlsplit takes [::1].evil.example for [::1].
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
DOCUMENTATION_ADDRESS = "192.0.2.1"  # leads nowhere, RFC 5737


class HostGuard:
    """Answers requests only that name this machine as the user does."""

    def __init__(self, app: ASGIApp, *, address: str = "", named: Iterable[str] = ()) -> None:
        """Guard an application.

        Args:
            app: What answers.
            address: Where the server listens; empty for everywhere.
            named: Further hosts by which people reach it, as the user names them.
        """
        self._app = app
        self._address = address.strip("[]").lower()
        self._named = frozenset(name.strip().strip("[]").lower() for name in named) - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        if self.is_known(host):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": REFUSED})
        else:
            words = f"This server is not {host[:SHOWN_HOST]!r}. Open it as localhost, or start it "
            words += f"with that name in {HOSTS_VARIABLE} (several are separated by commas).\n"
            await PlainTextResponse(words, MISDIRECTED)(scope, receive, send)

    def is_known(self, host: str) -> bool:
        """Tell whether a Host header names this machine."""
        shape = HOST.fullmatch(host)
        if shape is None:
            return False
        name = shape[1].strip("[]").lower().rstrip(".")
        if name == LOOPBACK_NAME or name in self._named or (name and name == self._address):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        # A name is needed to lead elsewhere; where the server listens everywhere, any address is
        # one by which people reach it.
        return address.is_loopback or self._address in ALL_ADDRESSES


class OriginGuard:
    """Answers pages of this very server only, whatever else may be known by a request's cookies.

    A browser names the page that asks (``Origin``) wherever a request changes something, opens a
    socket, or is of another origin. Of sockets it names it always, so one that does not is refused.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, is_socket = headers.get("origin"), scope["type"] == "websocket"
        if is_own_page(origin, headers.get("host")) or (origin is None and not is_socket):
            await self._app(scope, receive, send)
        elif is_socket:
            await receive()
            await send({"type": "websocket.close", "code": REFUSED})
        else:
            words = "This server answers its own pages only, and this one comes from elsewhere.\n"
            await PlainTextResponse(words, 403)(scope, receive, send)


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Tell whether a page of this very host and port asks, as a browser says it.

    A program that is no browser can say what a page of ours would.
    """
    if origin is None or host is None:
        return False
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


class ContentPolicy:
    """Tells the browser that pages may load from this server only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the policy among the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = content_policy(Headers(scope=scope).get("host", ""))

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = policy
                headers.setdefault("x-content-type-options", "nosniff")
                headers.setdefault("referrer-policy", "same-origin")
            await send(message)

        await self._app(scope, receive, send_with_policy)


def content_policy(host: str) -> str:
    """Return what a page may load, by the kind of thing.

    Args:
        host: The server's own, which WebSockets need by name in some browsers.
    """
    scripts = " ".join(f"'sha256-{digest}'" for digest in _own_scripts())
    return "; ".join(
        (
            "default-src 'self'",
            # Streamlit imports components from blobs, and Vega compiles its expressions.
            f"script-src 'self' blob: 'unsafe-eval' {scripts}",
            "style-src 'self' 'unsafe-inline'",  # Streamlit writes its styles into the page
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host} blob: data:",
            "worker-src 'self' blob:",
            "frame-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        )
    )


def named_hosts() -> tuple[str, ...]:
    """Return the hosts that the user names."""
    return tuple(os.environ.get(HOSTS_VARIABLE, "").split(","))


def own_names() -> tuple[str, ...]:
    """Return the names that this machine has for itself."""
    return (socket.gethostname(), socket.getfqdn())


def own_address(address: str) -> str:
    """Return an address by which others reach a server that listens on this one."""
    if address not in ALL_ADDRESSES:
        return f"[{address}]" if ":" in address else address
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect((DOCUMENTATION_ADDRESS, 9))  # sends nothing, and picks the interface
            return asking.getsockname()[0]
    except OSError:  # there is no network
        return socket.gethostname()


@cache
def _own_scripts() -> tuple[str, ...]:
    """Return the digests of the scripts that stand in the page itself: Streamlit's and ours."""
    page = files("streamlit").joinpath("static", "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page + SCRIPT, re.DOTALL)
    return tuple(b64encode(sha256(one.encode()).digest()).decode() for one in scripts)
