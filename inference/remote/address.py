"""The address of an engine, and the key that goes with it.

A key is held in memory only: it is in no text of an :class:`Endpoint`, and whatever a server says
goes through :meth:`Endpoint.without_key` before anybody reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from inference.records.errors import InputError

SCHEMES = ("http", "https")
PORTS = {"http": 80, "https": 443}
KEY_TEXT = re.compile(r"[\x21-\x7e]{1,4096}")
LONGEST_ADDRESS = 2048
EXAMPLE = "give one like http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an engine listens.

    Attributes:
        prefix: The path before ``/v1``; empty, or begins with a slash and ends without one.
        key: What is sent as a bearer token; None for none.
    """

    scheme: str
    host: str
    port: int
    prefix: str
    key: str | None = field(default=None, repr=False, compare=False)

    @property
    def address(self) -> str:
        """The address as it is shown and kept, without the key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"

    def without_key(self, text: str) -> str:
        """Return a text in which the key, should a server repeat it, is not readable."""
        return text if self.key is None else text.replace(self.key, "[key]")


def endpoint_at(address: str, key: str | None = None) -> Endpoint:
    """Return the endpoint of an address that a user typed; a trailing ``/v1`` is left off.

    Raises:
        InputError: It is no http or https address of a server, holds a key or a query, or the key
            cannot be sent.
    """
    if key is not None and not KEY_TEXT.fullmatch(key):
        msg = "the key holds a space, a line break or a letter that no header takes, or is empty; "
        msg += "copy it again"
        raise InputError(msg)
    parts = _parts(address.strip())
    prefix = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return Endpoint(
        scheme=parts.scheme,
        host=_ascii_host(parts.hostname or ""),
        port=parts.port or PORTS[parts.scheme],
        prefix=prefix,
        key=key,
    )


def _parts(address: str) -> SplitResult:
    """Return the parts of an address; no complaint repeats it, since it may hold a key."""
    if not address.isprintable() or " " in address or len(address) > LONGEST_ADDRESS:
        msg = f"the address holds a space or a control character, or is too long; {EXAMPLE}"
        raise InputError(msg)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        msg = f"the address cannot be read; {EXAMPLE}"
        raise InputError(msg) from error
    if parts.scheme not in SCHEMES or not parts.hostname or port == 0:
        msg = f"the address is none of a server that speaks http or https; {EXAMPLE}"
        raise InputError(msg)
    if parts.username is not None or parts.password is not None:
        msg = (
            "the address holds a user or a password; leave them out and give the key apart from it"
        )
        raise InputError(msg)
    if parts.query or parts.fragment or not parts.path.isascii():
        msg = f"the address has a part after ? or #, or a path beyond ASCII; {EXAMPLE}"
        raise InputError(msg)
    return parts


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError as error:
        msg = f"the address has a host name that does not exist; {EXAMPLE}"
        raise InputError(msg) from error
