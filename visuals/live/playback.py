"""A recorded run that plays again: what is shown of it follows from the clock, no thread needed.

Nothing is generated and nothing is timed: the steps keep the step times they were recorded with.
The owner locks. No torch.
"""

from __future__ import annotations

from collections.abc import Callable

from inference.process.messages import Action
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.replay import run_until, step_ends_s, steps_over

SPEEDS: dict[str, float] = {
    "Speed: its own": 1.0,
    "Speed: \u00bd": 0.5,
    "Speed: \u00bc": 0.25,
    "Speed: 2 \u00d7": 2.0,
    "Speed: 4 \u00d7": 4.0,
    "Speed: 16 \u00d7": 16.0,
}


class Replay:
    """One recorded run while it plays.

    Attributes:
        trace: The whole run.
        state: Running, paused, stopped, or the recorded run's own state once all of it was shown.
    """

    def __init__(
        self,
        trace: RunTrace,
        now: Callable[[], float],
        *,
        speed: float = 1.0,
        is_paused: bool = False,
        steps: int = 0,
    ) -> None:
        """Begin to play, after the first ``steps`` steps where not from the beginning."""
        self.trace = trace
        self.state = RunState.PAUSED if is_paused else RunState.RUNNING
        self._now = now
        self._speed = speed
        self._ends_s = step_ends_s(trace.events)
        self._steps = min(max(steps, 0), len(self._ends_s))
        self._position_s = self._reached_s()
        self._anchor_s = now()
        self._shown: RunTrace | None = None

    def snapshot(self) -> RunTrace:
        """Return the run as far as it has played."""
        self.advance()
        shown = self._shown
        if shown is None or shown.state is not self.state or len(shown.events) != self._steps:
            message = self.trace.message if self.state.is_final else ""
            shown = self._shown = run_until(self.trace, self._steps, self.state, message)
        return shown

    def advance(self) -> None:
        """Let the time since the last call pass."""
        now_s = self._now()
        if self.state is RunState.RUNNING:
            self._position_s += (now_s - self._anchor_s) * self._speed
            self._steps = max(self._steps, steps_over(self._ends_s, self._position_s))
        self._anchor_s = now_s
        if self._steps >= len(self._ends_s) and not self.state.is_final:
            self.state = ending(self.trace)

    def control(self, action: Action, steps_per_s: float | None = None) -> None:
        """Pause, resume, step, stop, or keep to a number of steps a second."""
        self.advance()
        if self.state.is_final:
            return
        if action is Action.PACE:
            self._keep_pace(steps_per_s)
        elif action is Action.STEP:
            self.state = RunState.PAUSED
            self._steps = min(self._steps + 1, len(self._ends_s))
            self._position_s = self._reached_s()
            self.advance()
        else:
            self.state = {
                Action.PAUSE: RunState.PAUSED,
                Action.RESUME: RunState.RUNNING,
                Action.STOP: RunState.STOPPED,
            }[action]

    def change_speed(self, speed: float) -> None:
        """Play this many times as fast as the run went."""
        self.advance()
        self._speed = speed
        self._ends_s = step_ends_s(self.trace.events)
        self._position_s = self._reached_s()

    def _keep_pace(self, steps_per_s: float | None) -> None:
        if steps_per_s is None:
            self._ends_s = step_ends_s(self.trace.events)
        else:
            count = len(self.trace.events)
            self._ends_s = tuple((step + 1) / steps_per_s for step in range(count))
        self._speed = 1.0
        self._position_s = self._reached_s()

    def _reached_s(self) -> float:
        """Return the position at which the newest step shown was over."""
        return self._ends_s[self._steps - 1] if self._steps else 0.0


def ending(trace: RunTrace) -> RunState:
    """Return the state of a run once all of it has played."""
    return trace.state if trace.state.is_final else RunState.STOPPED
