"""What all benches make of times: rounds that alternate, medians with their spread, ratios.

On a machine that does other things too, one time says little. Subjects therefore take turns in
short rounds, forwards and backwards, and two of them are compared within each round: what slows
the machine down slows both. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

from inference.records.errors import InputError

Round = Callable[[], float]  # returns the seconds of one step, the median of the round's


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median between the quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure that is to be reached.

    Attributes:
        found: The figure measured; None when it was not.
        is_at_most: The figure may be at most ``wanted`` instead of at least.
    """

    name: str
    wanted: float
    found: Spread | None
    is_at_most: bool = False

    @property
    def is_met(self) -> bool | None:
        """True when the median is good enough; None when there is none."""
        if self.found is None:
            return None
        if self.is_at_most:
            return self.found.median <= self.wanted
        return self.found.median >= self.wanted


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles of one value or more."""
    if len(values) == 1:
        return Spread(median=values[0], low=values[0], high=values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(median=middle, low=low, high=high)


def step_s(stamps: Sequence[float], warm: int) -> float:
    """Return the median time between stamps, the first ``warm`` steps left out.

    Raises:
        InputError: No step is left.
    """
    step_times = [after - before for before, after in pairwise(stamps)][warm:]
    if not step_times:
        msg = f"{max(0, len(stamps) - 1)} steps are too few to leave {warm} out; take more"
        raise InputError(msg)
    return median(step_times)


def alternate(subjects: Mapping[str, Round], rounds: int) -> dict[str, tuple[float, ...]]:
    """Return each subject's seconds a step, round by round, every other round backwards."""
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for index in range(rounds):
        order = list(subjects) if index % 2 == 0 else list(subjects)[::-1]
        for name in order:
            seconds[name].append(subjects[name]())
    return {name: tuple(values) for name, values in seconds.items()}


def speed_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return how many times as fast the first is, from seconds a step, round by round."""
    return ratio_of(theirs, ours)


def ratio_of(dividends: Sequence[float], divisors: Sequence[float]) -> Spread:
    """Return the first values divided by the second, round by round."""
    return spread_of([one / other for one, other in zip(dividends, divisors, strict=True)])


def rates(seconds: Sequence[float], amount: float) -> Spread:
    """Return ``amount`` a second for each round's seconds."""
    return spread_of([amount / one for one in seconds])
