"""The live route: one WebSocket a viewer, ten frames a second at most, one frame in flight.

The viewer must know the run's token and come from this very host. It gets what it has not seen,
draws it and acknowledges, with the time that drawing took; a slow viewer gets fewer, larger frames
and never a queue. Frames are built off the event loop, so that a frame that takes long holds up no
other viewer, and one is built for all viewers who have drawn as much (looks.py).

A run is held until its pages are drawn (page_hold.py): to acknowledge a frame of a held run is to
say that the page is quiet. While a prefill runs no frame is built, nor in the first steps after it.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.records.telemetry import TelemetrySample
from visuals.live.frame_tokens import Frame
from visuals.live.frames import frame
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.looks import Look, Made
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
# Just so often that each viewer sees something new twice a second.
SCARCE_INTERVAL_S = 0.4
# Likewise building frames: at most this share of one processor while the machine is full.
FRAMES_SHARE = 0.03
# And drawing them: of a full machine, and of one processor in any case.
DRAWING_SHARE = 0.04
DRAWING_SHARE_AT_MOST = 0.25
# And sending them: so many to all viewers together, on a full machine.
FRAMES_TOGETHER_PER_S = 75.0
SLOWEST_INTERVAL_S = 2.0
SAMPLES_TRIED = 5
MACHINE_IS_FULL = 0.95
ENGINE_HAS_ENOUGH = 0.85
READINGS_INTERVAL_S = 0.5  # without a step only the utilisation moves; also finds viewers gone
PREFILL_INTERVAL_S = 1.0  # until a first token is there
FIRST_STEPS_S = 0.3  # from the first token to the first frame, which has the most to draw
MAX_CURSOR_DIGITS = 32
MAX_DRAWN_MS = 60_000.0


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
    await off_the_loop(viewer.open)
    try:
        while True:
            started_s = time.monotonic()
            built = await off_the_loop(viewer.build)
            if built.text is not None:
                await socket.send_text(built.text)
                said = await asyncio.wait_for(next_text(socket), ACKNOWLEDGE_TIMEOUT_S)
                await off_the_loop(partial(viewer.acknowledge, built, started_s, said))
            if built.is_whole and built.is_final:
                await socket.close()
                return
            if built.is_whole:
                interval_s = frame_interval_s(
                    built.samples, viewer.busy_s, viewer.drawing_s, viewers=run.viewers
                )
                await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))
    finally:
        await asyncio.shield(off_the_loop(viewer.close))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """A frame.

    Attributes:
        update: What is in it; None where the viewer needs none at this moment.
        text: As it travels; None likewise.
        busy_s: Processor time that it took to build.
        samples: The run's readings, the newest last.
        is_final: The run had ended before the frame was built.
        is_whole: Nothing of the run so far comes after it.
        is_held: The run waits for its pages to be drawn.
    """

    update: Frame | None
    text: str | None
    busy_s: float
    samples: Sequence[TelemetrySample]
    is_final: bool
    is_whole: bool
    is_held: bool


class _Viewer:
    """What one viewer has drawn of a run, and what comes next.

    Attributes:
        busy_s: Processor time that the latest frame took to build.
        drawing_s: Time that the viewer took to draw it, as it says.
    """

    def __init__(self, hub: Hub, run: LiveRun, cursor: int) -> None:
        self.busy_s = 0.0
        self.drawing_s = 0.0
        self._hub = hub
        self._run = run
        self._cursor = cursor
        self._tally = Tally()
        self._seen: Look | None = None  # that all of was built
        self._drawn: tuple[RunStatus, int] | None = None  # where the run stood, and items of it
        self._drawn_s = -math.inf
        self._is_quiet = False
        self._first_token_s: float | None = None

    def open(self) -> None:
        """Have the run wait for this viewer, where it is held."""
        self._hub.page_opened(self._run)

    def close(self) -> None:
        """Have the run wait no more."""
        if not self._is_quiet:
            self._hub.page_left(self._run)

    def build(self) -> _Built:
        """Return the next frame; it takes the hub's lock and up to a quarter of a second."""
        busy_s = time.thread_time()
        now_s = time.monotonic()
        look = self._run.looks.newest(self._seen, now_s, self._take_look)
        status, trace = look.status, look.trace
        is_needed = self._needs(status, trace, now_s)
        made = look.frame(self._cursor, partial(self._make, look)) if is_needed else None
        update = made.update if made is not None else None
        is_whole = update is None or update["to"] == update["total"]
        self._seen = look if is_whole else None
        return _Built(
            update=update,
            text=made.text if made is not None else None,
            busy_s=time.thread_time() - busy_s,
            samples=trace.telemetry if trace is not None else (),
            is_final=status.state.is_final,
            is_whole=is_whole,
            is_held=status.is_held,
        )

    def _take_look(self) -> Look:
        status = self._hub.status(self._run)
        return Look(status=status, trace=self._hub.snapshot(self._run), at_s=time.monotonic())

    def _make(self, look: Look) -> Made:
        update = frame(look.trace, look.status, self._cursor, self._tally)
        return Made(update=update, text=json.dumps(update, allow_nan=False))

    def acknowledge(self, built: _Built, sent_s: float, said: str) -> None:
        """Take it that the viewer has drawn a frame, and is quiet where the run is held."""
        update = built.update
        if update is None:
            return
        self.busy_s, self._drawn_s = built.busy_s, sent_s
        self.drawing_s = drawing_s(said)
        self._cursor = int(str(update["to"]))
        if built.is_held and built.is_whole and not self._is_quiet:
            self._is_quiet = True
            self._hub.page_is_quiet(self._run)

    def _needs(self, status: RunStatus, trace: RunTrace | None, now_s: float) -> bool:
        """Tell whether the viewer needs a frame: at once for a step or a state, else seldom."""
        items = _items(trace)
        before, since_s = self._drawn, now_s - self._drawn_s
        if before is not None and status.state is RunState.RUNNING and not status.is_held:
            if not _has_token(trace):
                if since_s < PREFILL_INTERVAL_S:
                    return False
            elif self._is_in_first_steps(now_s):
                return False
        is_new = before != (status, items) or self._cursor < items
        if not is_new and since_s <= READINGS_INTERVAL_S:
            return False
        self._drawn = (status, items)
        return True

    def _is_in_first_steps(self, now_s: float) -> bool:
        """Tell whether the first token came a moment ago."""
        if self._first_token_s is None:
            self._first_token_s = now_s
        return now_s - self._first_token_s < FIRST_STEPS_S


def drawing_s(said: str) -> float:
    """Return how long a viewer says, in milliseconds, that it drew; 0 where it does not say."""
    try:
        milliseconds = float(said.partition(" ")[2] or 0)
    except ValueError:
        return 0.0
    return milliseconds / 1e3 if 0 <= milliseconds <= MAX_DRAWN_MS else 0.0


def _items(trace: RunTrace | None) -> int:
    """Return how much of a run there is to draw."""
    if trace is None:
        return 0
    return sum(len(request.prompt_ids) for request in trace.requests) + len(trace.events)


def _has_token(trace: RunTrace | None) -> bool:
    """Tell whether a step has selected a token."""
    if trace is None or not trace.events:
        return False
    return any(row.token_id is not None for row in trace.events[-1].rows) or any(
        row.token_id is not None for event in trace.events for row in event.rows
    )


def frame_interval_s(
    samples: Sequence[TelemetrySample],
    busy_s: float = 0.0,
    drawing_s: float = 0.0,
    *,
    viewers: int = 1,
) -> float:
    """Return how long to wait between two frames, longer while processors are short.

    Short means: the machine has been full lately. If the engine had less than its share of it, a
    browser draws on the same processors; else frames only have to be built for a small part of
    the time, and sent to all viewers together so often and no more.

    Args:
        samples: Readings, the newest last.
        busy_s: Processor time that the latest frame took to build.
        drawing_s: Time that the viewer took to draw it.
        viewers: Who follow the run.
    """
    least_s = min(max(FRAME_INTERVAL_S, drawing_s / DRAWING_SHARE_AT_MOST), SLOWEST_INTERVAL_S)
    latest = samples[-SAMPLES_TRIED:]
    machine = [sample.cpu_busy_ratio for sample in latest if sample.cpu_busy_ratio is not None]
    engine = [s.process_cpu_ratio for s in latest if s.process_cpu_ratio is not None]
    if len(machine) < SAMPLES_TRIED or len(engine) < SAMPLES_TRIED:
        return least_s
    if fmean(machine) <= MACHINE_IS_FULL:
        return least_s
    drawn_s = min(drawing_s / DRAWING_SHARE, SLOWEST_INTERVAL_S)
    if fmean(engine) < ENGINE_HAS_ENOUGH:
        return max(SCARCE_INTERVAL_S, drawn_s)
    shared_s = max(busy_s / FRAMES_SHARE, viewers / FRAMES_TOGETHER_PER_S)
    return max(least_s, min(shared_s, SCARCE_INTERVAL_S), drawn_s)


def _cursor(socket: WebSocket) -> int | None:
    """Return how much the viewer has seen: 0 for what is no count, None for more than any run."""
    value = socket.query_params.get("from", "0")
    if not (value.isascii() and value.isdigit()):
        return 0
    return int(value) if len(value) <= MAX_CURSOR_DIGITS else None
