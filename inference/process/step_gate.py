"""The engine process's end of the pipe: one outbox for all threads, and the gate before each step.

A run goes on only when its gate opens; waiting happens between two steps, in no step time. No
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
        """Send one reply; where the app is gone the next receive ends this process."""
        with self._lock:
            try:
                self._connection.send(reply)
            except OSError:
                return


class StepGate:
    """Decides between two steps whether the next may begin: pause, single step, stop and pace.

    Attributes:
        is_shutdown: The whole process is to end, and not the run alone.
    """

    def __init__(
        self,
        connection: Connection,
        command: Generate,
        clock: StepClock,
        report: Callable[[Reply], None],
        observe: Callable[[CaptureAttention | SplitSteps], None] = lambda _command: None,
    ) -> None:
        """Start closed or open, as the command says.

        Args:
            connection: Where commands come in.
            command: The run.
            clock: What the pace is kept by.
            report: Takes a change of the run's state.
            observe: Takes what is to be captured, or timed apart, from the next step on.
        """
        self.is_shutdown = False
        self._observe = observe
        self._connection = connection
        self._run_id = command.run_id
        self._clock = clock
        self._report = report
        self._is_paused = command.is_paused
        self._hold_s = command.hold_s
        self._steps_per_s = command.steps_per_s
        self._is_stopped = False
        self._steps_owed = 0
        self._last_start_s: float | None = None

    def begin(self) -> None:
        """Report the pause of a run that starts with one."""
        if self._is_paused:
            self._report(StateChanged(run_id=self._run_id, state=RunState.PAUSED))

    def hold(self) -> None:
        """Wait until a command begins or steers the run, no longer than it may be held."""
        if not self._hold_s or self._is_paused:
            return
        until_s = self._clock.now_s() + self._hold_s
        while self._hold_s and not self._is_stopped:
            left_s = until_s - self._clock.now_s()
            if left_s <= 0 or not self._connection.poll(left_s):
                break
            self._take()
        self._hold_s = 0.0
        if not (self._is_paused or self._is_stopped):
            self._report(StateChanged(run_id=self._run_id, state=RunState.RUNNING))

    def wait(self) -> bool:
        """Block until the next step may begin; False when the run is to stop."""
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

        The step behind the wait was let through, so a pause that comes meanwhile holds the next.
        """
        until_s = self._clock.now_s() + seconds
        while not self._is_stopped:
            left_s = until_s - self._clock.now_s()
            if left_s <= 0 or not self._connection.poll(left_s):
                return True
            self._take()
        return False

    def _delay_s(self) -> float | None:
        """Return how long the next step must wait; None for until a command lets it begin."""
        if self._is_paused:
            return 0.0 if self._steps_owed else None
        if self._steps_per_s is None or self._last_start_s is None:
            return 0.0
        due_s = self._last_start_s + 1 / self._steps_per_s
        return max(0.0, due_s - self._clock.now_s())

    def _take(self) -> None:
        """Obey one command that came in during the run."""
        try:
            command: Command = self._connection.recv()
        except (EOFError, OSError):
            command = Shutdown()
        if isinstance(command, Shutdown):
            self._is_stopped = self.is_shutdown = True
        elif isinstance(command, CaptureAttention | SplitSteps):
            self._observe(command)
        elif isinstance(command, Control) and command.run_id == self._run_id:
            self._obey(command)

    def _obey(self, control: Control) -> None:
        if control.action is Action.PACE:
            self._steps_per_s = control.steps_per_s
            return
        self._hold_s = 0.0
        if control.action is Action.STOP:
            self._is_stopped = True
        elif control.action is not Action.BEGIN:
            # A single step out of a running generation pauses it first.
            self._change_to(
                RunState.RUNNING if control.action is Action.RESUME else RunState.PAUSED
            )
            self._steps_owed += control.action is Action.STEP

    def _change_to(self, state: RunState) -> None:
        if self._is_paused is not (state is RunState.PAUSED):
            self._is_paused = not self._is_paused
            self._report(StateChanged(run_id=self._run_id, state=state))
