"""One look at a run for all who watch it, and one frame for all who have drawn as much of it.

Thirty viewers of a lecture are level most of the time. Whoever has seen all of the newest look
takes another; the others are given that one, so all of them come to the same places in the run, and
what is between two places is built and written as text once. No torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from inference.records.run import RunTrace
from inference.records.status import RunStatus
from visuals.live.frame_tokens import Frame

FRESH_S = 0.1  # how long a look is good for those who have not seen it: a frame's interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A frame, and as it travels."""

    update: Frame
    text: str


@dataclass(slots=True)
class _Slot:
    """Where one frame is made; who comes meanwhile waits for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    made: Made | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Look:
    """A run at one moment, and the frames made of it by the cursor that each begins at.

    Attributes:
        status: Where the run stood.
        trace: The run so far; None while there is nothing but its status.
        at_s: When it was taken.
    """

    status: RunStatus
    trace: RunTrace | None
    at_s: float
    _slots: dict[int, _Slot] = field(default_factory=dict[int, _Slot])

    def frame(self, cursor: int, make: Callable[[], Made]) -> Made:
        """Return the frame for those who have drawn this much, made by the first who asks."""
        slot = self._slots.setdefault(cursor, _Slot())
        with slot.lock:
            if slot.made is None:
                slot.made = make()
            return slot.made


class Looks:
    """The newest look at a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: Look | None = None

    def newest(self, seen: Look | None, now_s: float, take: Callable[[], Look]) -> Look:
        """Return the newest look, a new one where it is old or all of it was seen already.

        Args:
            seen: The look that the viewer who asks was given all of last; None for none.
            now_s: The time.
            take: Takes a new look.
        """
        with self._lock:
            newest = self._newest
            if newest is None or newest is seen or now_s - newest.at_s >= FRESH_S:
                newest = self._newest = take()
            return newest

    def forget(self) -> None:
        """Keep nothing for viewers that are gone; takes no lock, so that any may be held."""
        self._newest = None
