"""The live route: one WebSocket a viewer, ten frames a second at most, one frame in flight.

The viewer must know the run's token and come from this very host. It gets what it has not seen,
draws it and acknowledges; a slow viewer gets fewer, larger frames and never a queue.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
from collections.abc import Sequence
from statistics import fmean
from urllib.parse import urlparse

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from inference.records.telemetry import TelemetrySample
from visuals.live.frames import frame
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.tally import Tally
from visuals.live.vega_bundle import bundle

FRAME_INTERVAL_S = 0.1
# Where a browser draws on the engine's own cores, each stolen core stalls all threads of a step.
SCARCE_INTERVAL_S = 0.5
# Likewise building frames: at most so much of one processor while the machine is full.
FRAMES_SHARE = 0.03
SAMPLES_TRIED = 5
MACHINE_IS_FULL = 0.95
ENGINE_HAS_ENOUGH = 0.85
ACKNOWLEDGE_TIMEOUT_S = 60.0  # a hidden tab's timers may sleep for a minute
READINGS_INTERVAL_S = 0.5  # without a step only the utilisation moves; also finds viewers gone
REFUSED = 1008


def live_routes(hub: Hub) -> list[Route | WebSocketRoute]:
    """Return the routes of the live panel over this hub."""

    async def watch(socket: WebSocket) -> None:
        run = hub.find(socket.path_params["run_id"])
        if run is None or not may_watch(socket, run):
            await socket.close(REFUSED)
            return
        await socket.accept()
        hub.watch(run)
        try:
            await _stream(socket, hub, run)
        except (WebSocketDisconnect, TimeoutError):
            return  # the viewer is gone; the grace time begins
        finally:
            hub.leave(run)

    return [Route("/live/vega.js", _vega), WebSocketRoute("/live/run/{run_id}", watch)]


async def _vega(_request: Request) -> Response:
    script = await asyncio.to_thread(bundle)
    return Response(
        script, media_type="text/javascript", headers={"cache-control": "public, max-age=86400"}
    )


async def _stream(socket: WebSocket, hub: Hub, run: LiveRun) -> None:
    """Send frames until the run is final and all of it was sent."""
    cursor, last, tally = _cursor(socket), _Sent(), Tally()
    while True:
        started_s, busy_s = time.monotonic(), time.thread_time()
        status = hub.status(run)
        trace = hub.snapshot(run)
        update = frame(trace, status, cursor, tally)
        is_whole = update["to"] == update["total"]
        if last.is_worth_sending(update, started_s):
            text = json.dumps(update, allow_nan=False)
            busy_s = time.thread_time() - busy_s
            await socket.send_text(text)
            await asyncio.wait_for(socket.receive_text(), ACKNOWLEDGE_TIMEOUT_S)
            last = _Sent(update, started_s, busy_s)
            cursor = int(str(update["to"]))
        if status.state.is_final and is_whole:
            await socket.close()
            return
        if is_whole:
            samples = trace.telemetry if trace is not None else ()
            interval_s = frame_interval_s(samples, last.busy_s)
            await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))


def frame_interval_s(samples: Sequence[TelemetrySample], busy_s: float = 0.0) -> float:
    """Return how long to wait between two frames, longer while processors are short.

    Short means: the machine has been full lately. If the engine had less than its share of it, a
    browser draws on the same processors; else frames only have to be built for a small part of
    the time.

    Args:
        samples: Readings, the newest last.
        busy_s: Processor time that the latest frame took to build.
    """
    latest = samples[-SAMPLES_TRIED:]
    machine = [sample.cpu_busy_ratio for sample in latest if sample.cpu_busy_ratio is not None]
    engine = [s.process_cpu_ratio for s in latest if s.process_cpu_ratio is not None]
    if len(machine) < SAMPLES_TRIED or len(engine) < SAMPLES_TRIED:
        return FRAME_INTERVAL_S
    if fmean(machine) <= MACHINE_IS_FULL:
        return FRAME_INTERVAL_S
    if fmean(engine) < ENGINE_HAS_ENOUGH:
        return SCARCE_INTERVAL_S
    return min(max(FRAME_INTERVAL_S, busy_s / FRAMES_SHARE), SCARCE_INTERVAL_S)


class _Sent:
    """The frame sent last, when, and the processor time it took to build."""

    def __init__(
        self,
        update: dict[str, object] | None = None,
        at_s: float = -math.inf,
        busy_s: float = 0.0,
    ) -> None:
        self.busy_s = busy_s
        self._update = update
        self._at_s = at_s

    def is_worth_sending(self, update: dict[str, object], now_s: float) -> bool:
        """Tell whether a viewer needs this frame: at once for a step or a state, else seldom."""
        if self._update is None or update["from"] != update["to"]:
            return True
        if update["run"] != self._update["run"] or update["total"] != self._update["total"]:
            return True
        return now_s - self._at_s > READINGS_INTERVAL_S


def _cursor(socket: WebSocket) -> int:
    """Return how much the viewer has seen; 0 for anything that is not a count."""
    value = socket.query_params.get("from", "0")
    return int(value) if value.isascii() and value.isdigit() else 0


def may_watch(socket: WebSocket, run: LiveRun) -> bool:
    """Tell whether the token is right and the page that asks is ours."""
    token = socket.query_params.get("k", "")
    if not hmac.compare_digest(token.encode(), run.token.encode()):
        return False
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")
