"""An engine's metrics page, read once a second while somebody looks at its figures.

A watch reads on a thread of its own and ends some seconds after the page has asked for it last.
No torch.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from datetime import UTC, datetime
from time import monotonic

from inference.records.errors import InputError
from inference.records.serving import EngineReading
from inference.remote.address import Endpoint
from inference.remote.connection import Wire
from inference.remote.engine_rows import reading_in
from inference.remote.gauges import read_page

EVERY_S = 1.0
UNWATCHED_S = 6.0
MOST_READINGS = 600
MOST_WATCHES = 8


class ServingWatch:
    """The readings of one engine, the newest last; safe from several threads."""

    def __init__(self, endpoint: Endpoint, *, every_s: float = EVERY_S) -> None:
        """Begin to read; the key is the endpoint's own."""
        self._endpoint = endpoint
        self._every_s = every_s
        self._readings: deque[EngineReading] = deque(maxlen=MOST_READINGS)
        self._touched_s = monotonic()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="serving-watch", daemon=True)
        self._thread.start()

    @property
    def is_going(self) -> bool:
        """True while it reads."""
        return not self._is_over.is_set()

    def readings(self) -> tuple[EngineReading, ...]:
        """Return what was read so far, and have it go on."""
        self._touched_s = monotonic()
        with self._lock:
            return tuple(self._readings)

    def end(self) -> None:
        """Read no more, and return once it does not."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        finally:
            self._is_over.set()

    async def _read(self) -> None:
        async with Wire(self._endpoint) as wire:
            while self.is_going and monotonic() - self._touched_s < UNWATCHED_S:
                began_s = monotonic()
                page = await read_page(wire)
                reading = reading_in(page, datetime.now(UTC))
                with self._lock:
                    self._readings.append(reading)
                # The distance is from beginning to beginning, and never below a second.
                await asyncio.sleep(max(0.0, self._every_s - (monotonic() - began_s)))


class ServingWatches:
    """The process's watches, one for each engine and key that pages look at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[tuple[Endpoint, str | None], ServingWatch] = {}

    def of(self, endpoint: Endpoint) -> ServingWatch:
        """Return the watch of an engine, begun where it does not go.

        Raises:
            InputError: As many engines are watched already as this server reads at a time.
        """
        with self._lock:
            self._watches = {name: one for name, one in self._watches.items() if one.is_going}
            name = (endpoint, endpoint.key)
            if name not in self._watches:
                if len(self._watches) >= MOST_WATCHES:
                    msg = f"{MOST_WATCHES} engines are watched from this server already; close a "
                    msg += "page that watches one"
                    raise InputError(msg)
                self._watches[name] = ServingWatch(endpoint)
            return self._watches[name]

    def end(self) -> None:
        """End all of them."""
        with self._lock:
            for watch in self._watches.values():
                watch.end()
            self._watches.clear()
