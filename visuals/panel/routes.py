"""The routes of the panel's modules, its chart library and its terms, each with its version.

An address of another version has nothing: a browser that asks for it holds a page of before, and
must not be given a module of now.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from visuals.live.vega_bundle import bundle
from visuals.panel.modules import modules, panel_version, vega_version
from visuals.panel.terms_file import terms_file, terms_version

SCRIPTS_PATH = "live/panel"
VEGA_PATH = "live/vega"
TERMS_PATH = "live/terms"
_KEPT_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}


def panel_routes() -> list[Route]:
    """Return the routes of all scripts that the browser loads, and of the terms."""
    return [
        # A browser keeps a failed import of an address: another attempt has another address.
        Route(f"/{SCRIPTS_PATH}/{{version}}/{{attempt:int}}/{{name}}", _module),
        Route(f"/{VEGA_PATH}/{{version}}.js", _vega),
        Route(f"/{TERMS_PATH}/{{version}}.json", _terms),
    ]


def scripts_address() -> str:
    """Return where this version's modules are, below the server's address."""
    return f"{SCRIPTS_PATH}/{panel_version()}"


def vega_address() -> str:
    """Return where the chart library is, below the server's address."""
    return f"{VEGA_PATH}/{vega_version()}.js"


def terms_address() -> str:
    """Return where the glossary is, below the server's address."""
    return f"{TERMS_PATH}/{terms_version()}.json"


async def _module(request: Request) -> Response:
    content = modules().get(request.path_params["name"])
    if content is None or request.path_params["version"] != panel_version():
        return _nothing()
    return _script(content)


async def _vega(request: Request) -> Response:
    if request.path_params["version"] != vega_version():
        return _nothing()
    return _script(await asyncio.to_thread(bundle))


async def _terms(request: Request) -> Response:
    if request.path_params["version"] != terms_version():
        return _nothing()
    return Response(terms_file(), media_type="application/json", headers=_KEPT_FOR_GOOD)


def _script(content: bytes) -> Response:
    return Response(content, media_type="text/javascript", headers=_KEPT_FOR_GOOD)


def _nothing() -> Response:
    return Response("not of this version", 404, headers={"cache-control": "no-store"})
