"""Loads that pages started: one at a time in the whole server, on a thread and loop of its own.

A load that no page has asked for in a while is stopped, since somebody may be paying for its
tokens; what came until then is kept. No torch.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from inference.records.arrivals import LoadPlan, RemoteRun
from inference.records.errors import InputError, TokenByTokenError
from inference.records.status import RunState
from inference.remote.address import Endpoint
from inference.remote.connection import Wire
from inference.remote.growing import EndpointOrder, opened
from inference.remote.load import LoadOrder, recorded_load
from inference.remote.tries import taken_extras
from inference.runs.load_store import LoadStore

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
UNWATCHED_S = 150.0  # a hidden tab's timers sleep up to a minute between two questions
BUSY = (
    "a load goes on already, and two would disturb each other; stop it, or wait until it has ended"
)
STOPPED = "stopped; what came until then is kept"
UNWATCHED = "stopped, since no page had asked for it in two and a half minutes"
NOTHING_CAME = "stopped before anything was sent"
BROKE = "the load ended for a reason that is in this server's log"


class LoadRun:
    """A load while it goes, and after.

    Attributes:
        key: Its name on disk.
        address: Where its requests go; without the key.
        model: The model that is asked.
        plans: What is sent, one after another.
        state: Where it stands; queued while the server is asked what it takes.
        message: Why it ended, where there is more to say; empty otherwise.
        problem: Why it could not be kept on disk; empty when it could.
        runs: Those plans that have ended.
        ended: Requests of the plan that goes that have ended.
        sending_since: UTC, when the plan that goes began; None while none does.
    """

    def __init__(self, endpoint: Endpoint, order: EndpointOrder, plans: Sequence[LoadPlan]) -> None:
        self.key = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.address, self.model, self.plans = endpoint.address, order.model or "", tuple(plans)
        self.state, self.message, self.problem = RunState.QUEUED, "", ""
        self.runs: tuple[RemoteRun, ...] = ()
        self.ended = 0
        self.sending_since: datetime | None = None
        self._order = order
        self._touched_s = monotonic()
        self._why = STOPPED
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def plan(self) -> LoadPlan | None:
        """The plan that goes; None when all have ended."""
        return self.plans[len(self.runs)] if len(self.runs) < len(self.plans) else None

    def touch(self) -> None:
        """Have it go on: a page shows it."""
        self._touched_s = monotonic()

    def stop(self) -> None:
        """Have all streams closed; what came is kept."""
        with self._lock:
            is_first = not self._stop.is_set()
            self._stop.set()
            if is_first and self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def go(self, endpoint: Endpoint, store: LoadStore) -> None:
        """Carry the load out and keep it; on a thread of its own."""
        state, message = RunState.FAILED, BROKE
        try:
            asyncio.run(self._go(endpoint))
            state, message = self._outcome()
        except asyncio.CancelledError:
            state, message = RunState.STOPPED, self._why if self.runs else NOTHING_CAME
        except TokenByTokenError as error:
            message = str(error)
        finally:
            self.sending_since = None
            self._save(store)
            self.message = message
            self.state = state

    async def _go(self, endpoint: Endpoint) -> None:
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._stop.is_set():
                raise asyncio.CancelledError
        looking = asyncio.create_task(self._look())
        try:
            await self._send(endpoint)
        finally:
            looking.cancel()
            with self._lock:
                self._loop = self._task = None  # nothing may be sent to a loop that is closed

    async def _send(self, endpoint: Endpoint) -> None:
        async with Wire(endpoint) as wire:
            info, asks = await opened(wire, self._order)
            order = LoadOrder(
                asks=asks,
                engine=info.engine,
                extras=taken_extras(info),
                silence_s=self._order.silence_s,
                on_ended=self._note_ended,
            )
            self.state = RunState.RUNNING
            for plan in self.plans:
                self.ended, self.sending_since = 0, datetime.now(UTC)
                run, is_stopped = await recorded_load(wire, info, plan, order)
                if run is not None:
                    self.runs = (*self.runs, run)
                if is_stopped:
                    self._stop.set()
                    return

    async def _look(self) -> None:
        """Stop the load when no page has asked for it in a while."""
        while monotonic() - self._touched_s <= UNWATCHED_S:
            await asyncio.sleep(LOOK_EVERY_S)
        self._why = UNWATCHED
        self.stop()

    def _note_ended(self, ended: int) -> None:
        self.ended = ended

    def _outcome(self) -> tuple[RunState, str]:
        if self._stop.is_set():
            return RunState.STOPPED, self._why if self.runs else NOTHING_CAME
        requests = [one for run in self.runs for one in run.requests]
        if all(one.state is not RunState.DONE for one in requests):
            return RunState.FAILED, requests[-1].message if requests else BROKE
        return RunState.DONE, ""

    def _save(self, store: LoadStore) -> None:
        if not self.runs:
            return
        try:
            store.save(self.key, self.runs)
        except InputError as error:
            self.problem = str(error)
            log.warning("%s", error)


class LoadRuns:
    """The one load that goes or was the last to end, and the store that keeps them."""

    def __init__(self, store: LoadStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._latest: LoadRun | None = None
        self._thread: threading.Thread | None = None

    @property
    def latest(self) -> LoadRun | None:
        """The load that goes, or the last that has ended; None where there was none."""
        return self._latest

    def start(self, endpoint: Endpoint, order: EndpointOrder, plans: Sequence[LoadPlan]) -> LoadRun:
        """Return a load that has begun.

        Raises:
            InputError: Another one goes on.
        """
        with self._lock:
            if self._latest is not None and not self._latest.state.is_final:
                raise InputError(BUSY)
            load = LoadRun(endpoint, order, plans)
            self._latest = load
            self._thread = threading.Thread(
                target=load.go, args=(endpoint, self.store), name="load-run", daemon=True
            )
            self._thread.start()
        return load

    def join(self) -> None:
        """Return once nothing goes."""
        if self._thread is not None:
            self._thread.join()

    def end(self) -> None:
        """Stop what goes, and return once it has ended."""
        if self._latest is not None:
            self._latest.stop()
        self.join()
