"""Which steps other programs disturbed: the one rule, and how many steps of a run it marks.

A step is disturbed when its threads stood ready without a processor for more than a twentieth of
its time. Where the system does not count that, no step is marked. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inference.records.steps import Phase, StepEvent

# Source: our choice. Quiet steps of the default model on two cores lose less, and differ by as much
# among themselves.
DISTURBED_RATIO = 0.05
# Source: our choice. A machine that disturbs a measurement four times over is not idle.
MOST_REPETITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """How many steps were disturbed.

    Attributes:
        disturbed: Of the steps below, those that were.
        steps: Steps of which it is known whether they were.
    """

    disturbed: int
    steps: int

    @property
    def ratio(self) -> float:
        """Share of the steps that were disturbed; 0 where of none it is known."""
        return self.disturbed / self.steps if self.steps else 0.0

    @property
    def is_whole(self) -> bool:
        """True when there is no step that was not."""
        return 0 < self.disturbed == self.steps

    @property
    def sentence(self) -> str:
        """The count in words, such as ``9 of 63 steps disturbed by other programs``."""
        if not self.disturbed:
            return ""
        noun = "step" if self.steps == 1 else "steps"
        count = f"All {self.steps:,}" if self.is_whole else f"{self.disturbed:,} of {self.steps:,}"
        count = "The only" if self.is_whole and self.steps == 1 else count
        return f"{count} {noun} disturbed by other programs"


def lost_too_much(run_delay_s: float | None, duration_s: float) -> bool:
    """Tell whether a time of which so much was lost counts as disturbed; False where unknown."""
    return run_delay_s is not None and run_delay_s > DISTURBED_RATIO * duration_s


def is_disturbed(event: StepEvent) -> bool:
    """Tell whether other programs disturbed a step; False where that is not known."""
    return lost_too_much(event.run_delay_s, event.duration_s)


def disturbance(events: Iterable[StepEvent]) -> Disturbance:
    """Return how many of the steps were disturbed."""
    known = [is_disturbed(event) for event in events if event.run_delay_s is not None]
    return Disturbance(disturbed=sum(known), steps=len(known))


def rests_on_disturbed(events: Iterable[StepEvent]) -> bool:
    """Tell whether a run's figures cannot leave its disturbed steps out.

    They cannot where a prefill step was disturbed, which TTFT needs, or every decode step.
    """
    steps = list(events)
    prefills = [event for event in steps if event.phase is Phase.PREFILL]
    decodes = [event for event in steps if event.phase is Phase.DECODE]
    return disturbance(prefills).disturbed > 0 or disturbance(decodes).is_whole


def undisturbed(events: Iterable[StepEvent]) -> Sequence[StepEvent]:
    """Return the steps that were not disturbed; all of them where every one was."""
    steps = list(events)
    return [event for event in steps if not is_disturbed(event)] or steps
