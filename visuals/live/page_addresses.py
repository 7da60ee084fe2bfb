"""The pages' own addresses: each opens at once and asks the right server.

Streamlit's page looks for its server below its own address first, so ``/roofline`` asks for
``/roofline/_stcore/health`` and logs two errors before it asks for ``/_stcore/health``. Given the
address, by the variable that Streamlit reads for this, it does not guess.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from visuals.live.check_route import CHECK_PAGE

PAGES = (
    "tour",
    "compare",
    "roofline",
    "batching",
    "serving",
    "device",
    "runs",
    "playlists",
    CHECK_PAGE,
)
# The last part of the address is the page; what stands before it, behind a proxy, is the server's.
SCRIPT = (
    "<script>window.__streamlit = {BACKEND_BASE_URL: "
    'location.origin + location.pathname.replace(/[^/]*\\/?$/, "")};</script>'
)


def page_routes() -> list[Route]:
    """Return a route for the address of each page."""
    return [Route(f"/{page}", _page) for page in PAGES]


async def _page(_request: Request) -> HTMLResponse:
    return HTMLResponse(_document(), headers={"cache-control": "no-cache"})


@cache
def _document() -> str:
    """Return Streamlit's own page with the script before all others."""
    page = files("streamlit").joinpath("static", "index.html").read_text(encoding="utf-8")
    return page.replace("<head>", f"<head>{SCRIPT}", 1)
