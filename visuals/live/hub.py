"""The hub of the app process: one engine, one queue, every run's growing trace.

Plain Python, no streamlit: pages and the live route both come here. A run belongs to the hub and
not to a page, so reruns, other pages and reloads leave it alone. When nobody has watched a run for
the grace time, or 30 s longer before its first viewer, it is stopped and the device is free. What
the hub knows is kept by the files beside this one: registry.py has the runs, model_slot.py the
model, attention_requests.py and calibration.py the rest.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Protocol

from inference.models.tokenization import TextCodec
from inference.process.client import EngineClient
from inference.process.messages import (
    Action,
    Attended,
    CaptureRefused,
    Command,
    Control,
    EngineDied,
    LoadFailed,
    Loading,
    LoadModel,
    Measure,
    MeasureEnded,
    Measuring,
    ModelReady,
    Reply,
    RunEnded,
    RunStarted,
    Sampled,
    SplitSteps,
    StateChanged,
    Stepped,
)
from inference.process.orders import RunOrder, capture_of, check_order, command_of
from inference.records.attention import AttentionChoice
from inference.records.errors import TokenByTokenError
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from visuals.live.attention_feed import Captured
from visuals.live.attention_requests import Captures
from visuals.live.calibration import Measurements, MeasureStatus
from visuals.live.live_run import LiveRun, new_id
from visuals.live.model_slot import EngineStatus, ModelSlot, codec_of
from visuals.live.playback import Replay
from visuals.live.registry import Registry

log = logging.getLogger(__name__)

GRACE_S = 30.0  # covers a reload and a short network drop
HOUSEKEEPING_S = 1.0
WATCHED_SPLIT = 8  # one in so many steps is timed in parts while somebody looks at them


class Engine(Protocol):
    """The engine process as the hub sees it."""

    def send(self, command: Command) -> None:
        """Hand a command over."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


class Hub:
    """The one hub of the process."""

    # Called with each run that has ended, under the lock: they must be quick.
    on_end: list[Callable[[LiveRun], None]]
    # Finds a run that was kept elsewhere by its id; None where none are kept.
    recall: Callable[[str], RunTrace | None] | None = None

    def __init__(
        self,
        start_engine: Callable[[Callable[[Reply], None]], Engine] = EngineClient,
        *,
        now: Callable[[], float] = time.monotonic,
        grace_s: float = GRACE_S,
    ) -> None:
        self._lock = threading.RLock()
        self._now = now
        self._registry = Registry(now, grace_s)
        self.on_end = []
        self._engine = start_engine(self.receive)
        self._model = ModelSlot(self._engine.send)
        self._captures = Captures(send=self._engine.send)
        self._measurements = Measurements(send=self._engine.send)

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever needs several calls to be one, such as a group that goes on."""
        return self._lock

    # What pages ask: runs

    def submit(self, order: RunOrder) -> LiveRun:
        """Queue a run and return it.

        Raises:
            PromptError, InputError: The order cannot be run; nothing was queued.
        """
        with self._lock:
            check_order(order)
            if self._model.holds(order.load):
                self._model.requests(order)  # says at once what does not fit
            run = self._registry.queue(
                LiveRun(order=order, state=RunState.QUEUED, steps_per_s=order.steps_per_s)
            )
            self._advance()
            return run

    def adopt(self, trace: RunTrace) -> LiveRun:
        """Register a finished run that was read from a file, and return it."""
        with self._lock:
            run_id = f"file-{trace.info.run_id}"
            known = self._registry.find(run_id)
            if known is not None and known.recorded == trace:
                return known
            return self._recorded(trace, run_id if known is None else f"file-{new_id()}")

    def reopen(self, run_id: str) -> LiveRun | None:
        """Return a run that is kept though the registry has forgotten it; None when it is not."""
        trace = self.recall(run_id) if self.recall is not None else None
        if trace is None:
            return None
        with self._lock:
            return self._registry.find(run_id) or self._recorded(trace, run_id)

    def replay(self, trace: RunTrace, *, speed: float = 1.0, is_paused: bool = False) -> LiveRun:
        """Play a recorded run from its beginning, and return the run that shows it."""
        with self._lock:
            replay = Replay(trace, self._now, speed=speed, is_paused=is_paused)
            return self._registry.add(
                LiveRun(run_id=f"replay-{new_id()}", order=None, state=replay.state, replay=replay)
            )

    def change_speed(self, run: LiveRun, speed: float) -> None:
        """Play a replayed run so many times as fast as it went; others take no notice."""
        with self._lock:
            if run.replay is not None:
                run.replay.change_speed(speed)

    def find(self, run_id: str) -> LiveRun | None:
        """Return the run with this id, None when there is none."""
        return self._registry.find(run_id)

    def runs(self) -> tuple[LiveRun, ...]:
        """Return every run in the registry."""
        with self._lock:
            return self._registry.all()

    def snapshot(self, run: LiveRun) -> RunTrace | None:
        """Return the run so far; None before the engine took it up."""
        with self._lock:
            return run.snapshot()

    def status(self, run: LiveRun) -> RunStatus:
        """Return where the run stands."""
        with self._lock:
            run.advance()
            stage = self._model.stage if run.state is RunState.LOADING else None
            return RunStatus(
                state=run.state,
                message=run.message or run.notice or self._why_it_waits(run),
                stage=stage.stage if stage else "",
                stage_ratio=stage.ratio if stage else None,
                queue_position=self._registry.place(run),
            )

    def control(self, run: LiveRun, action: Action, steps_per_s: float | None = None) -> None:
        """Steer a run; one that waits remembers it, one that has ended ignores it."""
        control = Control(run_id=run.run_id, action=action, steps_per_s=steps_per_s)
        with self._lock:
            if action is Action.PACE:
                run.steps_per_s = steps_per_s
            if run.replay is not None:
                run.replay.control(action, steps_per_s)
                run.state = run.replay.state
            elif run is self._registry.active:
                self._engine.send(control)
            elif run not in self._registry.waiting:
                return
            elif action is Action.STOP:
                self._registry.waiting.remove(run)
                self._finish(run, RunState.STOPPED, "stopped before it began")
                self._advance()
            else:
                run.early_controls.append(control)

    # What pages ask: the model, and what is looked at and measured

    def engine_status(self) -> EngineStatus:
        """Return what the engine holds or is loading."""
        with self._lock:
            return self._model.status()

    def codec(self) -> TextCodec | None:
        """Return the held model's text codec; None while no model is loaded."""
        return self._model.codec

    def preload(self, command: LoadModel) -> None:
        """Load a model before anybody asks for a run, unless one is held or coming."""
        with self._lock:
            if self._model.ready is None and self._model.loading is None:
                self._model.load(command)

    def split_steps(self, run: LiveRun, *, is_wanted: bool) -> None:
        """Time the parts of some of a run's next steps, while somebody looks at them."""
        with self._lock:
            every = WATCHED_SPLIT if is_wanted else None
            if run is self._registry.active and run.split_every != every:
                run.split_every = every
                self._engine.send(SplitSteps(run_id=run.run_id, every=every))

    def capture(self, run: LiveRun, choice: AttentionChoice, query: int | None = None) -> None:
        """Look at another layer or head of a run, or at one query of its prompt exactly."""
        with self._lock:
            self._captures.ask(run.run_id, choice, query)

    def attention(self, run: LiveRun) -> Captured:
        """Return what is known of the run's attention weights."""
        with self._lock:
            return self._captures.captured(run.run_id, is_from_file=run.order is None)

    def measure(self, command: Measure) -> None:
        """Measure the device as soon as the engine is idle; runs wait meanwhile.

        Raises:
            InputError: A measurement waits or goes already.
        """
        with self._lock:
            self._measurements.order(command)
            self._advance()

    def stop_measuring(self) -> None:
        """End the measurement that goes or waits; without one, do nothing."""
        with self._lock:
            self._measurements.stop()

    def measure_status(self) -> MeasureStatus:
        """Return where the measurement stands, and what was measured before."""
        return self._measurements.status

    # Who is watching

    def watch(self, run: LiveRun) -> None:
        """Count one viewer more."""
        with self._lock:
            run.viewers += 1
            run.was_watched = True
            run.last_seen_s = self._now()

    def leave(self, run: LiveRun) -> None:
        """Count one viewer less; the grace time begins with the last."""
        with self._lock:
            run.viewers -= 1
            run.last_seen_s = self._now()

    def touch(self, run: LiveRun) -> None:
        """Say that somebody looked, for pages that poll."""
        run.was_watched = True
        run.last_seen_s = self._now()

    def abandon_unwatched(self) -> None:
        """Stop every run that nobody has watched for the grace time."""
        with self._lock:
            for run in self._registry.unwatched():
                run.is_abandoned = True
                self.control(run, Action.STOP)

    def keep_house(self, stop: threading.Event) -> None:
        """Abandon unwatched runs once a second until told to stop; run on a thread."""
        while not stop.wait(HOUSEKEEPING_S):
            self.abandon_unwatched()

    def close(self) -> None:
        """End the engine process."""
        self._engine.close()

    # What the engine says

    def receive(self, reply: Reply) -> None:
        """Take one reply; called on the client's reading thread."""
        if isinstance(reply, ModelReady):
            self._model_is_ready(reply)
            return
        with self._lock:
            if isinstance(reply, Stepped | Sampled | RunStarted | StateChanged | RunEnded):
                self._receive_run(reply)
            elif isinstance(reply, Attended | CaptureRefused):
                self._captures.receive(reply)
            elif isinstance(reply, Loading):
                self._model.stage = reply.stage
            elif isinstance(reply, LoadFailed):
                self._loading_failed(reply.sentence)
            elif isinstance(reply, Measuring | MeasureEnded):
                self._receive_measurement(reply)
            else:
                self._engine_died(reply)

    def _receive_measurement(self, reply: Measuring | MeasureEnded) -> None:
        self._measurements.receive(reply)
        measured = reply.ceilings if isinstance(reply, MeasureEnded) else None
        if measured is not None:
            self._registry.tell_roofs(measured)
        self._advance()

    def _receive_run(self, reply: Stepped | Sampled | RunStarted | StateChanged | RunEnded) -> None:
        run, codec = self._registry.active, self._model.codec
        if run is None or codec is None:
            return  # the last words of a run that is over
        if not isinstance(reply, RunEnded):
            run.receive(reply, codec)
            if isinstance(reply, RunStarted) and run.recording is not None:
                self._captures.started(run.run_id, run.recording)
            return
        run.unavailable = reply.unavailable
        self._registry.active = None
        self._finish(run, reply.state, reply.message)
        self._advance()

    def _model_is_ready(self, reply: ModelReady) -> None:
        """Make the text codec before anybody waits for the lock."""
        try:
            codec = codec_of(reply)
        except TokenByTokenError as error:
            with self._lock:
                self._loading_failed(str(error))
            return
        with self._lock:
            self._model.hold(reply, codec)
            self._measurements.model_is_held(reply.ceilings)
            self._advance()

    def _loading_failed(self, sentence: str) -> None:
        wanted = self._model.loading
        self._model.clear(error=sentence)
        waiting = self._registry.waiting
        if waiting and wanted == _wanted(waiting[0]):
            self._finish(waiting.popleft(), RunState.FAILED, sentence)
        self._advance()

    def _engine_died(self, reply: EngineDied) -> None:
        sentence = (
            f"the engine process ended unexpectedly ({_exit_words(reply.exit_code)}); "
            "what was recorded is kept and the next run starts a new engine"
        )
        log.error(sentence)
        self._measurements.died(sentence)
        active = self._registry.active
        if self._model.loading is not None:
            self._loading_failed(sentence)
            return
        self._model.clear()
        self._registry.active = None
        if active is not None:
            self._finish(active, RunState.FAILED, sentence)
        self._advance()

    # Under the lock

    def _advance(self) -> None:
        """Bring the first run in the queue as far as it can go."""
        registry = self._registry
        if registry.active is None and self._model.loading is None:
            self._measurements.begin()
        while self._is_idle and registry.waiting:
            run = registry.waiting[0]
            order = run.order
            if order is None:
                registry.waiting.popleft()
            elif not self._model.holds(order.load):
                run.state = RunState.LOADING
                self._model.load(order.load)
            else:
                registry.waiting.popleft()
                self._begin(run, order)

    def _why_it_waits(self, run: LiveRun) -> str:
        is_held_up = run in self._registry.waiting and self._measurements.is_going
        return "The device is being measured; the run begins after that." if is_held_up else ""

    @property
    def _is_idle(self) -> bool:
        """True while the engine runs, loads and measures nothing."""
        is_free = self._registry.active is None and self._model.loading is None
        return is_free and not self._measurements.is_going

    def _begin(self, run: LiveRun, order: RunOrder) -> None:
        """Send one run to the engine, or fail it with the reason."""
        try:
            run.requests = self._model.requests(order)
        except TokenByTokenError as error:
            self._finish(run, RunState.FAILED, str(error))
            return
        # What a decode step is prepared with shows like the loading of a model.
        is_prepared = order.decode is not DecodeMode.EAGER
        run.state = RunState.LOADING if is_prepared else RunState.QUEUED
        self._registry.active = run
        run.split_every = order.split_every
        ready = self._model.ready
        capture = capture_of(order, ready.shape) if ready is not None else None
        self._captures.begin(run.run_id, capture)
        self._engine.send(command_of(order, run.run_id, run.requests, capture))
        for control in run.early_controls:
            self._engine.send(control)

    def _finish(self, run: LiveRun, state: RunState, message: str) -> None:
        run.state, run.message = state, message
        if run.is_abandoned and state is RunState.STOPPED:
            run.state = RunState.ABANDONED
            grace_s = self._registry.grace_s(run)
            run.message = f"stopped because nobody had watched for {grace_s:.0f} s"
        self._captures.ended(run.run_id)
        for tell in self.on_end:
            tell(run)

    def _recorded(self, trace: RunTrace, run_id: str) -> LiveRun:
        """Register a finished run under this id."""
        return self._registry.add(
            LiveRun(
                run_id=run_id,
                order=None,
                state=trace.state if trace.state.is_final else RunState.STOPPED,
                message=trace.message,
                recorded=trace,
            )
        )


def _exit_words(exit_code: int | None) -> str:
    """Return what an exit code says: a process killed from outside often was out of memory."""
    if exit_code is not None and -exit_code == signal.SIGKILL:
        return f"exit code {exit_code}: killed, by a system short of memory perhaps"
    return f"exit code {exit_code}"


def _wanted(run: LiveRun) -> LoadModel | None:
    """Return the model a waiting run needs."""
    return run.order.load if run.order is not None else None


@cache
def app_hub() -> Hub:
    """Return the process's one hub; the engine starts with its first command."""
    return Hub(grace_s=float(os.environ.get("TOKEN_BY_TOKEN_GRACE_S", GRACE_S)))
