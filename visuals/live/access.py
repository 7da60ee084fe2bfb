"""Who may open the pages of a server that others can reach: whoever has one of its two keys.

One key is for operating, the other, made from it, for watching only. A key comes in with a link,
once, and is then kept as a cookie that no script can read. Without one nothing is answered: no
page, file, upload, stream or socket. On a loopback address nobody is asked unless a key was given.

The cookie holds no key but a visitor's name and its HMAC, so it is worth nothing on another server.
Cookies and the key to watch are made from the key to operate by a function that takes its time, so
that whoever has one of them cannot try keys by the million at home.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from hashlib import scrypt, sha256
from html import escape
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from inference.records.errors import InputError
from visuals.live.guards import HOSTS_VARIABLE
from visuals.live.key_attempts import KeyAttempts, place_of
from visuals.live.proxies import PROXIES_VARIABLE

KEY_VARIABLE = "TOKEN_BY_TOKEN_KEY"
KEY_FILE_VARIABLE = "TOKEN_BY_TOKEN_KEY_FILE"
KEY_PARAMETER = "key"
ROLE = "token_by_token.role"  # of a scope
# Streamlit resumes a session only for the same visitor (.streamlit/config.toml names this header).
VISITOR_HEADER = b"x-token-by-token-visitor"
KEY_SHAPE = re.compile(r"[\x21-\x7e]{16,256}")
VISITOR_SHAPE = re.compile(r"[A-Za-z0-9_-]{8,32}")
READING = ("GET", "HEAD")
REFUSED = 1008  # policy violation, RFC 6455 section 7.4.1
SIZE_DIGITS = 18
# Source: RFC 7914, section 2: memory of 128 N r bytes, here 32 MiB, and about 0.1 s for each try.
STRETCHING = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 1 << 26}
NEEDED = "This server asks for an access key."
WRONG = "That is not the key of this server."
TOO_MANY = "Too many wrong keys came from your address; wait a few seconds."
WHAT_TO_DO = (
    "Open the link that was printed where the server was started, or ask whoever started it for "
    "one. A link from before the last start may be out of date."
)


class Role(StrEnum):
    """What a visitor may do."""

    OPERATE = "operate"
    WATCH = "watch"


class AccessKeys:
    """The two keys of a server.

    Attributes:
        operate: For all that the pages offer.
        watch: For watching only.
        is_given: The user chose the key, so nobody has to be shown it.
        cookie: Name of the cookie, another one for each key: a host's servers share their cookies.
    """

    def __init__(self, operate: str, *, is_given: bool = False) -> None:
        self.operate = operate
        self._secret = scrypt(operate.encode(), salt=b"token-by-token", **STRETCHING)
        self.watch = _mac(self._secret, "watch")
        self.is_given = is_given
        self.cookie = f"token-by-token-{_mac(self._secret, 'name')[:8]}"

    def role_of_key(self, key: str) -> Role | None:
        """Return what a key is for; None for a wrong one. Takes as long for any of its length."""
        given = sha256(key.encode("utf-8", "replace")).digest()
        may_operate = hmac.compare_digest(given, sha256(self.operate.encode()).digest())
        may_watch = hmac.compare_digest(given, sha256(self.watch.encode()).digest())
        return Role.OPERATE if may_operate else Role.WATCH if may_watch else None

    def cookie_for(self, role: Role, visitor: str = "") -> str:
        """Return the cookie of a visitor; of a new one where none is named."""
        visitor = visitor or secrets.token_urlsafe(9)
        return f"{visitor}.{self._proof(role, visitor)}"

    def role_of_cookies(self, cookies: Mapping[str, str]) -> Role | None:
        """Return what a visitor with these cookies may do; None for nothing at all."""
        visitor, _, proof = cookies.get(self.cookie, "").partition(".")
        if not VISITOR_SHAPE.fullmatch(visitor):
            return None
        given = proof.encode("utf-8", "replace")
        rights = {
            role: hmac.compare_digest(given, self._proof(role, visitor).encode()) for role in Role
        }
        return next((role for role, is_right in rights.items() if is_right), None)

    def visitor_of(self, cookies: Mapping[str, str]) -> str:
        """Return the visitor's name; empty where the cookie is not of this server."""
        if self.role_of_cookies(cookies) is None:
            return ""
        return cookies[self.cookie].partition(".")[0]

    def _proof(self, role: Role, visitor: str) -> str:
        return _mac(self._secret, f"{role.value} {visitor}")


def keys_for(address: str, variables: dict[str, str] | None = None) -> AccessKeys | None:
    """Return the keys of a server that listens on an address; None where nobody is asked.

    Nobody is on a loopback address, unless a proxy or another name says that others reach it.
    The key is taken out of the variables, so that no process started from here inherits it.

    Args:
        address: Where the server listens; empty for everywhere.
        variables: Of the environment.

    Raises:
        InputError: The key given is too short, or its file cannot be read.
    """
    environment = os.environ if variables is None else variables
    given = environment.pop(KEY_VARIABLE, "").strip()
    path = environment.get(KEY_FILE_VARIABLE, "")
    if path and not given:
        try:
            given = Path(path).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            msg = f"the access key cannot be read from {path}: {error}"
            raise InputError(msg) from error
    if given or path:
        if not KEY_SHAPE.fullmatch(given):
            msg = "an access key has 16 to 256 ASCII characters and no spaces; give another one"
            raise InputError(msg)
        return AccessKeys(given, is_given=True)
    is_ours_alone = is_loopback(address) and not environment.get(PROXIES_VARIABLE, "").strip()
    names = filter(None, (one.strip() for one in environment.get(HOSTS_VARIABLE, "").split(",")))
    if is_ours_alone and all(is_loopback(name) for name in names):
        return None
    return AccessKeys(secrets.token_urlsafe(24))


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach an address."""
    name = address.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def links(keys: AccessKeys, url: str) -> str:
    """Return what is printed at the start: where to go to operate and to watch.

    A key that the user gave is not repeated.
    """
    own = f"{url}/?{KEY_PARAMETER}=" + ("YOUR-KEY" if keys.is_given else quote(keys.operate))
    return (
        f"  To operate (runs, uploads, settings): {own}\n"
        f"  To watch only:                        {url}/?{KEY_PARAMETER}={quote(keys.watch)}\n"
    )


def may_operate(scope: Mapping[str, object]) -> bool:
    """Tell whether a request comes from somebody who may change anything."""
    return scope.get(ROLE, Role.OPERATE) is Role.OPERATE


class AccessGate:
    """Answers those only who have a key, and from watchers takes nothing."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: AccessKeys | None,
        attempts: KeyAttempts | None = None,
        take_upload: Callable[[str, int], bool] = lambda _visitor, _size_bytes: True,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Guard an application.

        Args:
            app: What answers.
            keys: Of this server; None answers everybody.
            attempts: Counts wrong keys.
            take_upload: Counts what a visitor uploads, in bytes, and says whether it may come in.
            sleep: Lets time pass.
        """
        self._app = app
        self._keys = keys
        self._attempts = attempts or KeyAttempts()
        self._take_upload = take_upload
        self._sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if self._keys is None or scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        role = self._keys.role_of_cookies(request.cookies)
        if scope["type"] == "websocket":
            if role is None:
                await receive()
                await send({"type": "websocket.close", "code": REFUSED})
                return
        else:
            key = request.query_params.get(KEY_PARAMETER)
            if key is not None and scope["method"] == "GET":
                await (await self._admit(request, key))(scope, receive, send)
                return
            if role is None:
                await _refusal(NEEDED)(scope, receive, send)
                return
            if role is Role.WATCH and scope["method"] not in READING:
                await _refusal("This link is for watching only.")(scope, receive, send)
                return
            if scope["method"] not in READING and (refusal := self._weighed(request)) is not None:
                await refusal(scope, receive, send)
                return
        await self._app(self._known(scope, request, role), receive, send)

    def _known(self, scope: Scope, request: HTTPConnection, role: Role | None) -> Scope:
        """Return a request as of this visitor, whoever it says that it is of."""
        visitor = self._keys.visitor_of(request.cookies) if self._keys is not None else ""
        headers = [(name, value) for name, value in scope["headers"] if name != VISITOR_HEADER]
        headers.append((VISITOR_HEADER, f"{role} {visitor}".encode()))
        return {**scope, "headers": headers, ROLE: role}

    def _weighed(self, request: HTTPConnection) -> Response | None:
        """Return the refusal of an upload whose size is not stated or too much; None to go on."""
        stated = request.headers.get("content-length", "")
        if "transfer-encoding" in request.headers or len(stated) > SIZE_DIGITS:
            return _refusal("An upload has to say how large it is.", 411)
        size_bytes = int(stated) if stated.isascii() and stated.isdigit() else 0
        visitor = self._keys.visitor_of(request.cookies) if self._keys is not None else ""
        if self._take_upload(visitor, size_bytes):
            return None
        return _refusal("You have uploaded as much as each visitor may in an hour.", 413)

    async def _admit(self, request: HTTPConnection, key: str) -> Response:
        """Return the way on with a cookie and without the key, or a refusal, late for guesses."""
        keys, attempts = self._keys, self._attempts
        place = place_of(request.client.host if request.client else "")
        if wait_s := attempts.wait_s(place):
            if attempts.is_full(place):
                return _refusal(TOO_MANY, 429, {"retry-after": f"{wait_s:.0f}"})
            with attempts.waiting(place):
                await self._sleep(wait_s)
        role = keys.role_of_key(key) if keys is not None else None
        if keys is None or role is None:
            attempts.was_wrong(place)
            return _refusal(WRONG)
        onward = RedirectResponse(_onward(request), 303, headers=_UNKEPT)
        onward.set_cookie(
            keys.cookie,
            # A visitor who opens the link again stays the same one, as do the limits.
            keys.cookie_for(role, keys.visitor_of(request.cookies)),
            path=None,  # below the address that the browser sees, so a proxy's other pages lack it
            httponly=True,
            samesite="lax",  # a strict one is not sent on the way on from a link in a message
            secure=request.url.scheme == "https",
        )
        return onward


# A page on which a key was in the address must not be kept, nor name its address elsewhere.
_UNKEPT = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


def _onward(request: HTTPConnection) -> str:
    """Return the same address without the key, relative: a proxy may have a prefix before it."""
    last = request.url.path.rpartition("/")[2]
    parameters = [
        (name, value)
        for name, value in parse_qsl(request.url.query, keep_blank_values=True)
        if name != KEY_PARAMETER
    ]
    return f"./{quote(last)}" + (f"?{urlencode(parameters)}" if parameters else "")


def _refusal(
    words: str, status: int = 403, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Token by Token</title>'
        '<body style="font: 1.1rem system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; '
        'padding: 0 1rem"><h1 style="font-size: 1.4rem">'
        f"{escape(words)}</h1><p>{escape(WHAT_TO_DO)}</p>"
        f'<form><label>Access key <input name="{KEY_PARAMETER}" type="password" required '
        'autocomplete="off"></label> <button>Open</button></form></body></html>'
    )
    return HTMLResponse(page, status, headers={**_UNKEPT, **(headers or {})})


def _mac(secret: bytes, words: str) -> str:
    return hmac.new(secret, f"token-by-token {words}".encode(), sha256).hexdigest()
