"""How long a paused run may hold up the runs that wait for it, and what both are told meanwhile.

The time counts while the run is paused and another waits, and begins anew with each step or other
control, so somebody who steps through a run is not stopped. Belongs to the hub, whose lock is held
by whoever calls. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inference.records.status import RunState
from visuals.live.live_run import LiveRun
from visuals.live.registry import Registry

SHORT_S = 60.0  # from here down the time left is said in seconds
ROUNDED_S = 5.0  # so that a page is not told something else every second


@dataclass(slots=True, kw_only=True)
class PauseLimit:
    """Watches the run on the engine.

    Attributes:
        limit_s: How long a paused run may hold up others; 0 for as long as it likes.
    """

    registry: Registry
    now: Callable[[], float]
    limit_s: float
    _held_up: LiveRun | None = field(default=None, init=False)
    _since_s: float = field(default=0.0, init=False)

    def controlled(self, run: LiveRun) -> None:
        """Note that somebody steered this run, so its time begins anew."""
        if run is self._held_up:
            self._since_s = self.now()

    def overdue(self) -> LiveRun | None:
        """Return the paused run whose time is over; None while there is none."""
        left_s = self._left_s()
        return self._held_up if left_s is not None and self.limit_s and left_s <= 0 else None

    def ended_words(self) -> str:
        """Return why a run that is overdue was stopped."""
        return f"stopped after {_words(self.limit_s)} of pause while other runs were waiting"

    def sentence(self, run: LiveRun) -> str:
        """Return what those who watch this run should know of a pause; empty when nothing."""
        left_s = self._left_s()
        if left_s is None:
            return ""
        if run is self._held_up:
            if not self.limit_s:
                return "Other runs are waiting for this one."
            left = _words(left_s)
            return f"Other runs are waiting. In {left} this one is stopped, unless it goes on."
        if run not in self.registry.waiting:
            return ""
        gives_way = f" It gives way in {_words(left_s)} at the latest." if self.limit_s else ""
        return f"The current run was paused by the person who started it.{gives_way}"

    def _left_s(self) -> float | None:
        """Return how long the paused run may still hold up others; None where none does."""
        active = self.registry.active
        is_holding_up = active is not None and active.state is RunState.PAUSED
        if active is None or not is_holding_up or not self.registry.waiting:
            self._held_up = None
            return None
        if active is not self._held_up:
            self._held_up, self._since_s = active, self.now()
        return max(0.0, self.limit_s - (self.now() - self._since_s))


def _words(seconds: float) -> str:
    """Return a time as people say it, rounded up."""
    if seconds > SHORT_S:
        return f"{-(-seconds // SHORT_S):.0f} minutes"
    return f"{max(ROUNDED_S, -(-seconds // ROUNDED_S) * ROUNDED_S):.0f} seconds"
