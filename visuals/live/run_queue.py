"""The way of a run from the queue to its end: tokenised, sent to the engine, finished.

The next run's prompts are turned into ids on a thread of their own, because a long prompt or a
slow chat template takes seconds, and everything that a page shows needs the lock. Belongs to the
hub, whose lock is held by whoever calls. No torch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inference.process.messages import Action, Command, Control
from inference.process.orders import RunOrder, capture_of, command_of
from inference.records.errors import TokenByTokenError
from inference.records.options import DecodeMode
from inference.records.run import Request
from inference.records.status import RunState
from visuals.live.attention_requests import Captures
from visuals.live.calibration import Measurements
from visuals.live.live_run import LiveRun, RunObserver
from visuals.live.model_checks import ModelChecks
from visuals.live.model_slot import HeldModel, ModelSlot
from visuals.live.registry import Registry
from visuals.live.surroundings import RunApart

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RunQueue:
    """Brings one run after another to the engine.

    Attributes:
        send: Sends a command to the engine.
        on_end: Called with each run that has ended, under the lock, so they must be quick.
        run_apart: Carries out the tokenising, on another thread.
        hold_s: How long a run may wait for its page to be drawn.
    """

    lock: threading.RLock
    send: Callable[[Command], None]
    registry: Registry
    model: ModelSlot
    captures: Captures
    measurements: Measurements
    checks: ModelChecks
    on_end: tuple[RunObserver, ...]
    run_apart: RunApart
    hold_s: float
    _tokenizing: LiveRun | None = field(default=None, init=False)

    def enqueue(self, run: LiveRun) -> LiveRun:
        """Take a run behind those that wait, and return it.

        Raises:
            InputError: Too many wait.
        """
        self.registry.queue(run)
        self.measurements.give_way()
        self.advance()
        return run

    def advance(self) -> None:
        """Bring the first run in the queue as far as it can go."""
        if self.registry.active is None and self.model.loading is None:
            self.measurements.begin()
        while self.is_idle and self.registry.waiting:
            if not self._advance_first(self.registry.waiting[0]):
                return
        if self.is_idle:
            self.captures.begin_waiting()

    def stop_waiting(self, run: LiveRun) -> None:
        """End a run that the engine has not taken up."""
        self.registry.waiting.remove(run)
        self.finish(run, RunState.STOPPED, "stopped before it began")
        self.advance()

    def finish(self, run: LiveRun, state: RunState, message: str) -> None:
        """Give a run its last state and tell its observers."""
        run.state, run.message = state, message
        if run.is_abandoned and state is RunState.STOPPED:
            run.state = RunState.ABANDONED
            grace_s = self.registry.grace_s(run)
            run.message = f"stopped because nobody was watching for {grace_s:.0f} s"
        elif state is RunState.STOPPED and run.stop_reason:
            run.message = run.stop_reason
        run.let_go()
        self.captures.ended(run.run_id)
        for tell in (*self.on_end, run.on_end):
            if tell is not None:
                tell(run)

    def end_hold(self, run: LiveRun) -> None:
        """Let a held run begin once no page that follows it has to be drawn."""
        if run is self.registry.active and run.is_held and run.hold.is_needless:
            run.hold.is_on = False
            self.send(Control(run_id=run.run_id, action=Action.BEGIN))

    def why_it_waits(self, run: LiveRun) -> str:
        """Return why a run does not begin although the engine runs none; empty when none is."""
        is_held_up = run in self.registry.waiting and self.measurements.is_going
        return "The device is being measured; the run begins after that." if is_held_up else ""

    @property
    def is_idle(self) -> bool:
        """True while the engine runs, loads and measures nothing."""
        is_free = self.registry.active is None and self.model.loading is None
        return is_free and not self.measurements.is_going

    def _advance_first(self, run: LiveRun) -> bool:
        """Take the next run one stage further; False when that has to be waited for."""
        order = run.order
        if order is None:
            self.registry.waiting.popleft()
            return True
        held = self.model.held_for(order.load)
        if held is None:
            run.state = RunState.LOADING
            self.checks.no_model()
            self.model.load(order.load)
            return False
        if run.tokenized_by is not held:
            self._tokenize(run, order, held)
            return False
        self.registry.waiting.popleft()
        self._begin(run, order, held)
        return False

    def _tokenize(self, run: LiveRun, order: RunOrder, held: HeldModel) -> None:
        """Have a run's ids made without the lock; ``advance`` goes on when they are there."""
        if self._tokenizing is run:
            return
        self._tokenizing = run

        def work() -> None:
            try:
                requests = held.requests(order)
            except TokenByTokenError as error:
                self._refused(run, str(error))
            except Exception:  # a fault here must not leave the run, and the queue, waiting
                log.exception("the prompts of run %s could not be tokenised", run.run_id)
                self._refused(run, "the prompts could not be tokenised; the app's log says why")
            else:
                self._tokenized(run, held, requests)

        self.run_apart(work)

    def _tokenized(self, run: LiveRun, held: HeldModel, requests: tuple[Request, ...]) -> None:
        with self.lock:
            self._forget_tokenizing(run)
            run.requests, run.tokenized_by = requests, held
            self.advance()

    def _refused(self, run: LiveRun, sentence: str) -> None:
        with self.lock:
            self._forget_tokenizing(run)
            if run in self.registry.waiting:  # it may have been stopped meanwhile
                self.registry.waiting.remove(run)
                self.finish(run, RunState.FAILED, sentence)
            self.advance()

    def _forget_tokenizing(self, run: LiveRun) -> None:
        if self._tokenizing is run:
            self._tokenizing = None

    def _begin(self, run: LiveRun, order: RunOrder, held: HeldModel) -> None:
        """Send a run to the engine, with what was asked of it while it waited."""
        # What a decode step is prepared with shows like the loading of a model.
        is_prepared = order.decode is not DecodeMode.EAGER
        run.state = RunState.LOADING if is_prepared else RunState.QUEUED
        self.registry.active = run
        run.split_every = order.split_every
        capture = capture_of(order, held.ready.shape)
        self.captures.begin(run.run_id, capture)
        run.hold.is_on = self.hold_s > 0 and not order.is_paused
        hold_s = self.hold_s if run.hold.is_on else 0.0
        command = command_of(order, run.run_id, run.requests, capture)
        self.send(replace(command, hold_s=hold_s))
        for control in run.early_controls:
            self.send(control)
