"""Runs of engines at an address that pages started: each on a thread and event loop of its own.

The pages see snapshots, which the run's own loop makes; nothing of a stream is read by two threads.
A run that no page has asked for in a while is stopped, since somebody may be paying for its tokens.
No torch.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from time import monotonic

from inference.records.arrivals import RemoteRun
from inference.records.errors import InputError, RunFileError, TokenByTokenError
from inference.records.status import RunState
from inference.remote.address import Endpoint
from inference.remote.connection import Wire
from inference.remote.growing import EndpointOrder, GrowingRun, opened
from inference.runs.remote_store import RemoteStore

log = logging.getLogger(__name__)

SHOWN_EVERY_S = 0.2
UNWATCHED_S = 150.0  # a hidden tab's timers sleep up to a minute between two questions
MOST_GOING = 8
KEPT = 20
STOPPED_EARLY = "stopped before the prompt was sent"
BROKE = "the run ended for a reason that is in this server's log"


class EndpointRun:
    """A run at an address while it goes, and after.

    Attributes:
        run_id: Its name in addresses.
        address: Where its requests go; without the key.
        model: The model that is asked.
        state: Where it stands; queued while the server is asked what it takes.
        message: Why it ended, where there is more to say; empty otherwise.
        problem: Why it could not be kept on disk; empty when it could.
    """

    def __init__(self, run_id: str, address: str, model: str) -> None:
        self.run_id = run_id
        self.address = address
        self.model = model
        self.state = RunState.QUEUED
        self.message = ""
        self.problem = ""
        self.newest: RemoteRun | None = None
        self._touched_s = monotonic()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def snapshot(self) -> RemoteRun | None:
        """Return the run as a page may show it; None before its prompt was sent."""
        self._touched_s = monotonic()
        return self.newest

    def stop(self) -> None:
        """Have the stream closed; the engine's count of running requests is read afterwards."""
        with self._lock:
            is_first = not self._stop.is_set()
            self._stop.set()
            if is_first and self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def go(self, endpoint: Endpoint, order: EndpointOrder, store: RemoteStore) -> None:
        """Carry the run out and keep it; on a thread of its own."""
        try:
            asyncio.run(self._go(endpoint, order))
        except asyncio.CancelledError:
            self.message = STOPPED_EARLY
            self.state = RunState.STOPPED
        except TokenByTokenError as error:
            self.message = str(error)
            self.state = RunState.FAILED
        finally:
            self._end(store)

    async def _go(self, endpoint: Endpoint, order: EndpointOrder) -> None:
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._stop.is_set():
                raise asyncio.CancelledError
        try:
            await self._send(endpoint, order)
        finally:
            with self._lock:
                self._loop = self._task = None  # nothing may be sent to a loop that is closed

    async def _send(self, endpoint: Endpoint, order: EndpointOrder) -> None:
        async with Wire(endpoint) as wire:
            info, asks = await opened(wire, order)
            growing = GrowingRun(self.run_id, info)
            self.state = RunState.RUNNING
            showing = asyncio.create_task(self._show(growing))
            try:
                await growing.send(wire, asks, order.silence_s)
            finally:
                showing.cancel()
        self.newest = growing.snapshot()

    async def _show(self, growing: GrowingRun) -> None:
        """Let pages see what came, and stop the run when none has looked in a while."""
        while True:
            self.newest = growing.snapshot()
            if monotonic() - self._touched_s > UNWATCHED_S:
                self.stop()
            await asyncio.sleep(SHOWN_EVERY_S)

    def _end(self, store: RemoteStore) -> None:
        newest = self.newest
        if newest is not None and newest.requests:
            try:
                store.save(newest)
            except InputError as error:
                self.problem = str(error)
                log.warning("%s", error)
            if not self.state.is_final:
                self.message = newest.requests[-1].message
                self.state = newest.requests[-1].state
        if not self.state.is_final:
            self.message, self.state = BROKE, RunState.FAILED


class EndpointRuns:
    """The process's runs at addresses: those that go, and the last that have ended."""

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._runs: dict[str, EndpointRun] = {}

    def start(self, endpoint: Endpoint, order: EndpointOrder) -> EndpointRun:
        """Return a run that has begun.

        Raises:
            InputError: As many go already as this server carries out at a time.
        """
        run = EndpointRun(secrets.token_urlsafe(6), endpoint.address, order.model or "")
        with self._lock:
            going = sum(not one.state.is_final for one in self._runs.values())
            if going >= MOST_GOING:
                msg = f"{going} runs at addresses go already; wait for one, or stop one"
                raise InputError(msg)
            self._runs[run.run_id] = run
            over = [key for key, one in self._runs.items() if one.state.is_final]
            for key in over[: max(0, len(self._runs) - KEPT)]:
                del self._runs[key]
        threading.Thread(
            target=run.go, args=(endpoint, order, self.store), name="endpoint-run", daemon=True
        ).start()
        return run

    def sent_to(self, address: str) -> tuple[RemoteRun, ...]:
        """Return what was sent to an address from this server, as far as it has come."""
        with self._lock:
            runs = [one.newest for one in self._runs.values() if one.address == address]
        return tuple(run for run in runs if run is not None)

    def find(self, run_id: str) -> EndpointRun | None:
        """Return a run that goes, or is kept; None where there is none under this id."""
        with self._lock:
            run = self._runs.get(run_id)
        return run or self._reopened(run_id)

    def adopt(self, trace: RemoteRun) -> EndpointRun:
        """Return a run of a file as one that is over; it is not kept on disk."""
        first, last = trace.requests[0], trace.requests[-1]
        run = EndpointRun(trace.run_id, trace.endpoint.address, first.ask.model_id)
        run.newest, run.message, run.state = trace, last.message, last.state
        if not run.state.is_final:  # of a file that was written while it went
            run.state = RunState.STOPPED
        with self._lock:
            return self._runs.setdefault(trace.run_id, run)

    def _reopened(self, run_id: str) -> EndpointRun | None:
        try:
            trace = self.store.open(run_id)
        except RunFileError:
            return None
        return self.adopt(trace)
