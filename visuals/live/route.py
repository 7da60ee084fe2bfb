"""The live route: one WebSocket a viewer, ten frames a second at most, one frame in flight.

The viewer must know the run's token and come from this very host. It gets what it has not seen,
draws it and acknowledges; a slow viewer gets fewer, larger frames and never a queue. Frames are
built off the event loop, so that a frame that takes long holds up no other viewer.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from inference.records.telemetry import TelemetrySample
from visuals.live.frame_tokens import Frame
from visuals.live.frames import frame
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.tally import Tally
from visuals.live.viewers import (
    ACKNOWLEDGE_TIMEOUT_S,
    FRAME_INTERVAL_S,
    REFUSED,
    next_text,
    off_the_loop,
    serve_viewer,
)

# Where a browser draws on the engine's own cores, each stolen core stalls all threads of a step.
SCARCE_INTERVAL_S = 0.5
# Likewise building frames: at most this share of one processor while the machine is full.
FRAMES_SHARE = 0.03
SAMPLES_TRIED = 5
MACHINE_IS_FULL = 0.95
ENGINE_HAS_ENOUGH = 0.85
READINGS_INTERVAL_S = 0.5  # without a step only the utilisation moves; also finds viewers gone
MAX_CURSOR_DIGITS = 32


def live_routes(hub: Hub) -> list[WebSocketRoute]:
    """Return the route of the live panel over this hub."""

    async def watch(socket: WebSocket) -> None:
        if _cursor(socket) is None:
            await socket.close(REFUSED)
            return
        await serve_viewer(socket, hub, _stream)

    return [WebSocketRoute("/live/run/{run_id}", watch)]


async def _stream(socket: WebSocket, hub: Hub, run: LiveRun) -> None:
    """Send frames until the run is final and all of it was sent."""
    viewer = _Viewer(hub, run, _cursor(socket) or 0)
    while True:
        started_s = time.monotonic()
        built = await off_the_loop(viewer.build)
        if built.text is not None:
            await socket.send_text(built.text)
            await asyncio.wait_for(next_text(socket), ACKNOWLEDGE_TIMEOUT_S)
            viewer.acknowledge(built, started_s)
        if built.is_whole and built.is_final:
            await socket.close()
            return
        if built.is_whole:
            interval_s = frame_interval_s(built.samples, viewer.busy_s)
            await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """A frame.

    Attributes:
        text: As it travels; None where the viewer needs none at this moment.
        busy_s: Processor time that it took to build.
        samples: The run's readings, the newest last.
        is_final: The run had ended before the frame was built.
        is_whole: Nothing of the run so far comes after it.
    """

    update: Frame
    text: str | None
    busy_s: float
    samples: Sequence[TelemetrySample]
    is_final: bool
    is_whole: bool


class _Viewer:
    """What one viewer has drawn of a run, and what comes next."""

    def __init__(self, hub: Hub, run: LiveRun, cursor: int) -> None:
        self.busy_s = 0.0
        self._hub = hub
        self._run = run
        self._cursor = cursor
        self._tally = Tally()
        self._drawn: Frame | None = None
        self._drawn_s = -math.inf

    def build(self) -> _Built:
        """Return the next frame; it takes the hub's lock and up to a quarter of a second."""
        now_s, busy_s = time.monotonic(), time.thread_time()
        status = self._hub.status(self._run)
        trace = self._hub.snapshot(self._run)
        update = frame(trace, status, self._cursor, self._tally)
        text = json.dumps(update, allow_nan=False) if self._needs(update, now_s) else None
        return _Built(
            update=update,
            text=text,
            busy_s=time.thread_time() - busy_s,
            samples=trace.telemetry if trace is not None else (),
            is_final=status.state.is_final,
            is_whole=update["to"] == update["total"],
        )

    def acknowledge(self, built: _Built, sent_s: float) -> None:
        """Take it that the viewer has drawn a frame."""
        self.busy_s, self._drawn, self._drawn_s = built.busy_s, built.update, sent_s
        self._cursor = int(str(built.update["to"]))

    def _needs(self, update: Frame, now_s: float) -> bool:
        """Tell whether the viewer needs this frame: at once for a step or a state, else seldom."""
        if self._drawn is None or update["from"] != update["to"]:
            return True
        if update["run"] != self._drawn["run"] or update["total"] != self._drawn["total"]:
            return True
        return now_s - self._drawn_s > READINGS_INTERVAL_S


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


def _cursor(socket: WebSocket) -> int | None:
    """Return how much the viewer has seen: 0 for what is no count, None for more than any run."""
    value = socket.query_params.get("from", "0")
    if not (value.isascii() and value.isdigit()):
        return 0
    return int(value) if len(value) <= MAX_CURSOR_DIGITS else None
