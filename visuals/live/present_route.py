"""The route of presenter mode: one WebSocket a page, the presenter's and each viewer's.

A page is sent the presentation whenever it changes, ten times a second at most and only the newest;
a slow one holds up nobody. A presenter's page says what it wants shown. What any other page says is
refused in a sentence, whatever it is: the server decides who steers, and not the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from visuals.live.access import may_operate
from visuals.live.live_run import LiveRun
from visuals.live.presenting import Pointer, Presentation, Presenting, Seat, known_panels
from visuals.live.viewers import (
    REFUSED,
    NotTextError,
    has_token,
    is_from_here,
    next_text,
    off_the_loop,
)
from visuals.words.presenter import ONLY_FOLLOWING, RUN_NOT_HERE

PRESENT_PATH = "live/present"  # below the server's address
SENT_EVERY_S = 0.1  # at most
TOUCHED_EVERY_S = 1.0  # well within the grace time of a run that nobody watches
AWAY_S = 5.0  # how long a presenter's page may take to come back, as when it is reloaded
MAX_CHARACTERS = 500

Item = dict[str, object]


def present_routes(presenting: Presenting) -> list[WebSocketRoute]:
    """Return the route by which pages present and follow."""

    async def follow(socket: WebSocket) -> None:
        if not is_from_here(socket):
            await socket.close(REFUSED)
            return
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect, NotTextError):
            await _serve(socket, presenting)

    return [WebSocketRoute(f"/{PRESENT_PATH}", follow)]


async def _serve(socket: WebSocket, presenting: Presenting) -> None:
    """Tell a page what is shown and hear what it wants, until it is gone."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    asks = socket.query_params.get("as") == "presenter"
    seat = Seat(
        wake=partial(loop.call_soon_threadsafe, news.set),
        may_present=asks and may_operate(socket.scope),
    )
    presenting.sit(seat)
    telling = asyncio.ensure_future(_tell(socket, presenting, seat, news))
    try:
        while True:
            text = await next_text(socket)
            await off_the_loop(partial(obey, text, presenting, seat))
    finally:
        presenting.rise(seat)
        telling.cancel()
        if presenting.holds(seat):
            loop.call_later(AWAY_S, presenting.leave, seat)
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(socket: WebSocket, presenting: Presenting, seat: Seat, news: asyncio.Event) -> None:
    """Send what is new, and keep the run that is presented watched."""
    told: Item | None = None
    loop = asyncio.get_running_loop()
    touched_s = loop.time()
    while True:
        news.clear()
        while seat.sentences:
            await socket.send_text(json.dumps({"says": seat.sentences.popleft()}))
        item = presentation_item(presenting, seat)
        if item != told:
            await socket.send_text(json.dumps(item))
            told = item
            await asyncio.sleep(SENT_EVERY_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), TOUCHED_EVERY_S)
        if presenting.holds(seat) and loop.time() - touched_s >= TOUCHED_EVERY_S:
            await off_the_loop(partial(presenting.touch, seat))
            touched_s = loop.time()


def presentation_item(presenting: Presenting, seat: Seat) -> Item:
    """Return what a page is sent; the presenter's own is not told where it points itself."""
    now = presenting.current
    run = presenting.run(now.shown_id) if now is not None else None
    if now is None or run is None:
        return {"presents": False}
    holds = presenting.holds(seat)
    return {
        "presents": True,
        "holds": holds,
        "run": {"run_id": run.run_id, "token": run.token},
        "panels": list(now.panels),
        "dark": now.is_dark,
        "pointer": None if holds else _pointer_item(now),
    }


def obey(text: str, presenting: Presenting, seat: Seat) -> None:
    """Carry out what a page asks for; what cannot be understood asks for nothing."""
    asked = _asked(text)
    if asked is None:
        return
    panels, is_dark = known_panels(asked.get("panels")), asked.get("dark")
    run, do = _named_run(asked, presenting), asked.get("do")
    if not seat.may_present:
        seat.tell(ONLY_FOLLOWING)
    elif "run_id" in asked and run is None:
        seat.tell(RUN_NOT_HERE)
    elif do == "take" and run is not None:
        presenting.take(seat, run, panels, is_dark=is_dark is True)
    elif do == "show":
        presenting.show(
            seat, run=run, panels=panels, is_dark=is_dark if isinstance(is_dark, bool) else None
        )
    elif do == "point":
        presenting.point(seat, pointer_from(asked.get("pointer")))
    elif do in ("step", "back", "leave"):
        steer = {"step": presenting.forward, "back": presenting.back, "leave": presenting.leave}
        steer[do](seat)


def pointer_from(value: object) -> Pointer | None:
    """Return what is pointed at, as a page says it: a panel and two shares; None for nothing."""
    if not isinstance(value, list) or len(value) != 3:  # noqa: PLR2004  panel, across, down
        return None
    panel, *shares = value
    if not known_panels([panel]):
        return None
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
        return None
    return Pointer(panel=panel, x=float(shares[0]), y=float(shares[1]))


def _asked(text: str) -> dict[str, Any] | None:
    try:
        asked = json.loads(text[:MAX_CHARACTERS])
    except ValueError:
        return None
    return asked if isinstance(asked, dict) else None


def _named_run(asked: dict[str, Any], presenting: Presenting) -> LiveRun | None:
    """Return the run that a page names, which must know its token."""
    run_id, token = asked.get("run_id"), asked.get("token")
    run = presenting.run(run_id) if isinstance(run_id, str) else None
    return run if run is not None and isinstance(token, str) and has_token(run, token) else None


def _pointer_item(now: Presentation) -> list[object] | None:
    return None if now.pointer is None else [now.pointer.panel, now.pointer.x, now.pointer.y]
