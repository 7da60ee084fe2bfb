"""The engine process's end of the pipe: one outbox for all threads, and whose turn it is.

A run goes on only when its turn says so; waiting happens between two steps, in no step time. No
torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from inference.engine.clock import StepClock
from inference.process.messages import (
    Action,
    CaptureAttention,
    Command,
    Control,
    Generate,
    Reply,
    Shutdown,
    SplitSteps,
    StateChanged,
)
from inference.records.status import RunState


class Outbox:
    """Sends replies from several threads over one pipe, one at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def put(self, reply: Reply) -> None:
        """Send one reply; an app that is gone hears nothing, and the next receive ends us."""
        with self._lock:
            try:
                self._connection.send(reply)
            except OSError:
                return


class StepGate:
    """Decides between two steps whether the next may go: pause, single step, stop and pace."""

    def __init__(
        self,
        connection: Connection,
        command: Generate,
        clock: StepClock,
        report: Callable[[Reply], None],
        capture: Callable[[CaptureAttention | SplitSteps], None] | None = None,
    ) -> None:
        self.is_shutdown = False
        self._capture = capture
        self._connection = connection
        self._run_id = command.run_id
        self._clock = clock
        self._report = report
        self._is_paused = command.is_paused
        self._steps_per_s = command.steps_per_s
        self._is_stopped = False
        self._steps_owed = 0
        self._last_start_s: float | None = None
        if self._is_paused:
            report(StateChanged(run_id=self._run_id, state=RunState.PAUSED))

    def wait(self) -> bool:
        """Block until the next step may go; False when the run is to stop."""
        while not self._is_stopped:
            delay_s = self._delay_s()
            if not self._connection.poll(delay_s):
                if delay_s is not None and self._delay_s() == 0:
                    break
                continue
            self._take()
        if self._steps_owed:
            self._steps_owed -= 1
        self._last_start_s = self._clock.now_s()
        return not self._is_stopped

    def idle(self, seconds: float) -> bool:
        """Wait while no request is there; False when the run is to stop.

        The step behind the wait was granted, so a pause that comes meanwhile holds the next one.
        """
        until_s = self._clock.now_s() + seconds
        while not self._is_stopped:
            left_s = until_s - self._clock.now_s()
            if left_s <= 0 or not self._connection.poll(left_s):
                return True
            self._take()
        return False

    @property
    def is_stopped(self) -> bool:
        """True once the run is to end."""
        return self._is_stopped

    def release(self) -> None:
        """Let the generator run to its end without waiting; it has nothing more to feed."""
        self._is_paused, self._steps_per_s = False, None

    def _delay_s(self) -> float | None:
        """Return how long the next step must wait; None until somebody says so."""
        if self._is_paused:
            return 0.0 if self._steps_owed else None
        if self._steps_per_s is None or self._last_start_s is None:
            return 0.0
        due_s = self._last_start_s + 1 / self._steps_per_s
        return max(0.0, due_s - self._clock.now_s())

    def _take(self) -> None:
        """Obey one command that came in while the run goes."""
        try:
            command: Command = self._connection.recv()
        except (EOFError, OSError):
            command = Shutdown()
        if isinstance(command, Shutdown):
            self._is_stopped = self.is_shutdown = True
        elif isinstance(command, CaptureAttention | SplitSteps):
            if self._capture is not None:
                self._capture(command)
        elif isinstance(command, Control) and command.run_id == self._run_id:
            self._obey(command)

    def _obey(self, control: Control) -> None:
        if control.action is Action.STOP:
            self._is_stopped = True
        elif control.action is Action.PACE:
            self._steps_per_s = control.steps_per_s
        else:
            # A single step out of a running generation pauses it first.
            self._turn_to(RunState.RUNNING if control.action is Action.RESUME else RunState.PAUSED)
            self._steps_owed += control.action is Action.STEP

    def _turn_to(self, state: RunState) -> None:
        if self._is_paused is not (state is RunState.PAUSED):
            self._is_paused = not self._is_paused
            self._report(StateChanged(run_id=self._run_id, state=state))
