"""Who presents, and what all who follow are shown: one record, changed here and nowhere else.

A seat is one open page, the presenter's or a viewer's. The newest presenter holds the record; the
one before is told. An earlier step of a run is a run of its own that stands there (playback.py), so
whoever follows only has to be told which run is shown. No torch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inference.process.messages import Action
from inference.records.status import RunState
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.words.presenter import IDEAS, ONLY_FOLLOWING, RUN_NOT_HERE, TAKEN_OVER

MOST_PANELS = 2
FIRST_PANELS = ("tokens",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """What the presenter points at.

    Attributes:
        panel: Name of the panel.
        x: Across it, as a share of its width.
        y: Down it, as a share of its height.
    """

    panel: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """What all who follow are shown.

    Attributes:
        run_id: The run that is presented.
        shown_id: The run to draw: that one, or it as it stood after an earlier step.
        panels: Names of the panels, two at most.
        is_dark: Light on dark.
        pointer: What is pointed at; None for nothing.
    """

    run_id: str
    shown_id: str
    panels: tuple[str, ...] = FIRST_PANELS
    is_dark: bool = False
    pointer: Pointer | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Seat:
    """One open page that presents or follows.

    Attributes:
        wake: Called when there is something to send; from any thread, so it must be quick.
        may_present: It is an operator's and asked to present.
        sentences: What it has still to be told.
    """

    wake: Callable[[], object]
    may_present: bool = False
    sentences: deque[str] = field(default_factory=deque)

    def tell(self, sentence: str) -> None:
        """Have the page say a sentence."""
        self.sentences.append(sentence)
        self.wake()


class Presenting:
    """The presentation of a server; safe from several threads.

    Attributes:
        current: What is shown; None while nobody presents.
    """

    def __init__(self, hub: Hub) -> None:
        self.current: Presentation | None = None
        self._hub = hub
        self._lock = threading.RLock()
        self._seats: frozenset[Seat] = frozenset()
        self._holder: Seat | None = None

    # Both are called on the event loop, which may not wait for a lock.

    def sit(self, seat: Seat) -> None:
        """Take a page that follows from this moment on."""
        self._seats |= {seat}

    def rise(self, seat: Seat) -> None:
        """Forget a page that is gone; if it presented, its presentation stands until it is left."""
        self._seats -= {seat}

    def holds(self, seat: Seat) -> bool:
        """Tell whether this page presents."""
        return seat is self._holder

    def run(self, run_id: str) -> LiveRun | None:
        """Return the run with this id; None when it is not here."""
        return self._hub.find(run_id)

    def take(
        self, seat: Seat, run: LiveRun, panels: tuple[str, ...] = (), *, is_dark: bool = False
    ) -> None:
        """Have a page present a run.

        Without panels of its own it goes on with those that are shown, in the light they are shown
        in. Whoever presented before is told.
        """
        if not seat.may_present:
            seat.tell(ONLY_FOLLOWING)
            return
        with self._lock:
            before, now = self._holder, self.current
            self._holder = seat
            if before is not None and before is not seat:
                before.tell(TAKEN_OVER)
            shown = panels or (now.panels if now is not None else FIRST_PANELS)
            if now is not None and not panels:
                is_dark = now.is_dark
            self._set(
                Presentation(run_id=run.run_id, shown_id=run.run_id, panels=shown, is_dark=is_dark)
            )

    def leave(self, seat: Seat) -> None:
        """End the presentation of a page, if it is the one that presents."""
        with self._lock:
            if self.holds(seat):
                self._holder = None
                self._set(None)

    def show(
        self,
        seat: Seat,
        *,
        run: LiveRun | None = None,
        panels: tuple[str, ...] = (),
        is_dark: bool | None = None,
    ) -> None:
        """Change what the presenter of this seat shows: the run, the panels or the light."""
        with self._lock:
            if (now := self._held(seat)) is None:
                return
            if run is not None and run.run_id != now.run_id:
                now = replace(now, run_id=run.run_id, shown_id=run.run_id)
            if panels and panels != now.panels:
                now = replace(now, panels=panels, pointer=None)
            if is_dark is not None:
                now = replace(now, is_dark=is_dark)
            self._set(now)

    def point(self, seat: Seat, pointer: Pointer | None) -> None:
        """Ring something, or nothing, on all screens."""
        with self._lock:
            if (now := self._held(seat)) is not None:
                self._set(replace(now, pointer=pointer))

    def forward(self, seat: Seat) -> None:
        """Show the step after the one shown; where that is the newest, have the run do one more."""
        with self._lock:
            if (found := self._runs(seat)) is None:
                return
            now, run, shown = found
            if shown.replay is None or shown is run:
                self._hub.control(run, Action.STEP)
            elif _steps(self._hub, shown) + 1 < len(shown.replay.trace.events):
                self._hub.control(shown, Action.STEP)
            else:
                self._set(replace(now, shown_id=run.run_id))

    def back(self, seat: Seat) -> None:
        """Show the step before the one shown; a run that goes on is held first."""
        with self._lock:
            if (found := self._runs(seat)) is None:
                return
            now, run, shown = found
            if shown is run and _goes_on(run):
                self._hub.control(run, Action.PAUSE)
                return
            steps = _steps(self._hub, shown) - 1
            # One trace for all steps looked at, so that its attention weights are captured once.
            is_earlier = shown is not run
            trace = shown.finished if is_earlier else self._hub.snapshot(run)
            if trace is None or steps < 1:
                return
            earlier = self._hub.replay(trace, is_paused=True, steps=steps)
            self._set(replace(now, shown_id=earlier.run_id))

    def touch(self, seat: Seat) -> None:
        """Count the presenter as one who watches the run, also while an earlier step is drawn.

        A run that goes on again is shown itself.
        """
        with self._lock:
            now = self.current
            run = self._hub.find(now.run_id) if now is not None and self.holds(seat) else None
            if now is None or run is None:
                return
            self._hub.touch(run)
            if now.shown_id != run.run_id and _goes_on(run):
                self._set(replace(now, shown_id=run.run_id))

    def _held(self, seat: Seat) -> Presentation | None:
        """Return what this seat presents; None, and it is told, where it does not."""
        if self.holds(seat):
            return self.current
        seat.tell(TAKEN_OVER if seat.may_present else ONLY_FOLLOWING)
        return None

    def _runs(self, seat: Seat) -> tuple[Presentation, LiveRun, LiveRun] | None:
        """Return what this seat presents, with the run and the one drawn; None as in ``_held``."""
        if (now := self._held(seat)) is None:
            return None
        run = self._hub.find(now.run_id)
        if run is None:
            seat.tell(RUN_NOT_HERE)
            return None
        return now, run, self._hub.find(now.shown_id) or run

    def _set(self, now: Presentation | None) -> None:
        if now == self.current:
            return
        self.current = now
        for seat in self._seats:
            seat.wake()


def known_panels(names: object) -> tuple[str, ...]:
    """Return the first two panels that are named and known; empty for what is no list of names."""
    if not isinstance(names, list | tuple):
        return ()
    known = [name for name in names if isinstance(name, str) and name in IDEAS]
    return tuple(dict.fromkeys(known))[:MOST_PANELS]


def _goes_on(run: LiveRun) -> bool:
    return not (run.state.is_final or run.state is RunState.PAUSED)


def _steps(hub: Hub, run: LiveRun) -> int:
    trace = hub.snapshot(run)
    return 0 if trace is None else len(trace.events)
