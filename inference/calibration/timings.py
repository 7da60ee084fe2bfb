"""Timings that other programs did not disturb: those that were are measured again.

Not for a step of a run, which cannot be had again; for sweeps and roofs, which can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inference.engine.clock import StepClock
from inference.engine.run_delay import StepDelays, ThreadDelays
from inference.figures.disturbance import MOST_REPETITIONS, lost_too_much


@dataclass(frozen=True, slots=True)
class Timing:
    """One timing, and whether other programs took more of it than counts as quiet."""

    seconds: float
    is_disturbed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """The timings that a point's figures are of.

    Attributes:
        seconds: Those that were not disturbed; all of them where every one was.
        is_disturbed: True where every one was, however often they were measured again.
    """

    seconds: tuple[float, ...]
    is_disturbed: bool


class Stopwatch:
    """Times work with a clock, and notes what other programs took of it.

    On a device that runs on behind the host nothing is noted: a host that waits need not hold it
    up.
    """

    def __init__(self, clock: StepClock, delays: Callable[[], StepDelays] = ThreadDelays) -> None:
        self._clock = clock
        self._delays = delays

    def time(self, work: Callable[[], object]) -> Timing:
        """Return the time of some work, which ends when the device has finished."""
        with self._delays() as delays:
            delays.start()
            self._clock.start_timing()
            work()
            runs_on = self._clock.launched() is not None
            seconds = self._clock.end_timing()
            lost_s = None if runs_on else delays.stop()
        return Timing(seconds, lost_too_much(lost_s, seconds))


def quiet_timings(measure: Callable[[int], Iterable[Timing]], wanted: int) -> Timings:
    """Return undisturbed timings, measured again at most three times where there are too few.

    Args:
        measure: Returns some timings; it is given how many are missing.
        wanted: How many undisturbed ones are enough.
    """
    timings: list[Timing] = []
    quiet: list[float] = []
    for _ in range(1 + MOST_REPETITIONS):
        timings += measure(wanted - len(quiet))
        quiet = [timing.seconds for timing in timings if not timing.is_disturbed]
        if len(quiet) >= wanted:
            break
    kept = quiet or [timing.seconds for timing in timings]
    return Timings(seconds=tuple(kept), is_disturbed=not quiet)
