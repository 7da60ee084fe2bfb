"""The link by which others follow a presenter: to the page for watching, with the key for it.

It is made of the address at which the presenter's own browser reaches the server, a proxy's
included. Where that is one of this machine only, the link has an address that others can reach, if
the server listens on one; else it says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit, urlunsplit

from visuals.live.access import KEY_PARAMETER, AccessKeys, is_loopback
from visuals.live.guards import own_address
from visuals.words.presenter import FOR_A_ROOM

WATCH_PARAMETER = "watch"
LIVE_PAGE = "/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerLink:
    """Where others follow.

    Attributes:
        url: The address.
        note: Why nobody else can open it; empty where others can.
    """

    url: str
    note: str = ""


def viewer_link(page_url: str, keys: AccessKeys | None, address: str) -> ViewerLink:
    """Return the link for viewers.

    Args:
        page_url: Of the Live page, as the presenter's browser has it.
        keys: Of the server; None where nobody is asked.
        address: Where the server listens.
    """
    page = urlsplit(page_url)
    host, port = page.hostname or "", f":{page.port}" if page.port else ""
    netloc = page.netloc
    if is_loopback(host) and not is_loopback(address):
        host = own_address(address)
        netloc = f"{host}{port}"
    query = {KEY_PARAMETER: keys.watch} if keys is not None else {}
    path = page.path.removesuffix("/").removesuffix(LIVE_PAGE)
    said = urlencode({**query, WATCH_PARAMETER: "1"})
    url = urlunsplit((page.scheme, netloc, f"{path}/", said, ""))
    return ViewerLink(url=url, note=FOR_A_ROOM if is_loopback(host) else "")
