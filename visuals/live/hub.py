"""The hub of the app process: one engine, one queue, every run's growing trace.

Plain Python, no streamlit: pages and the live route both come here. A run belongs to the hub and
not to a page, so reruns, other pages and reloads leave it alone. When nobody has watched a run for
the grace time, or 30 s longer before its first viewer, it is stopped and the device is free.

This file is what others may ask. What the hub knows is kept by the files beside it: registry.py has
the runs, model_slot.py the model, attention_requests.py and calibration.py the rest;
idle_measuring.py begins what nobody has to ask for. What happens is in run_queue.py, from the queue
to the engine, and engine_replies.py, from the engine back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from inference.models.tokenization import TextCodec
from inference.process.client import EngineClient
from inference.process.messages import (
    Action,
    Control,
    LoadModel,
    Measure,
    ModelReady,
    Reply,
    SplitSteps,
)
from inference.process.orders import RunOrder, check_order
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.runs.packed_attention import packed_together
from inference.runs.store import RUN_KEY
from visuals.live.attention_feed import Captured, played
from visuals.live.attention_requests import Captures
from visuals.live.calibration import Measurements, MeasureStatus
from visuals.live.engine_replies import EngineReplies
from visuals.live.engine_restarts import EngineRestarts
from visuals.live.idle_measuring import IdleMeasuring
from visuals.live.idle_model import IdleModel
from visuals.live.live_run import LiveRun, new_id
from visuals.live.model_checks import ModelChecks, ModelCheckStatus
from visuals.live.model_slot import EngineStatus, ModelSlot
from visuals.live.pause_limit import PauseLimit
from visuals.live.playback import Replay
from visuals.live.registry import Registry
from visuals.live.run_queue import RunQueue
from visuals.live.stop_limit import StopLimit
from visuals.live.surroundings import EngineLink, Surroundings

HOUSEKEEPING_S = 1.0
WATCHED_SPLIT = 8  # one step in this many is timed in parts while somebody looks at them
# As many while nobody does. Chosen: a run of 64 tokens has four such steps for who looks later.
UNWATCHED_SPLIT = 16


class Hub:
    """The one hub of the process."""

    def __init__(
        self,
        start_engine: Callable[[Callable[[Reply], None]], EngineLink] = EngineClient,
        surroundings: Surroundings | None = None,
    ) -> None:
        around = surroundings or Surroundings()
        self._lock = threading.RLock()
        self._now = around.now
        self._recall = around.recall
        self._registry = Registry(around.now, around.grace_s)
        self._engine = start_engine(self.receive)
        self._model = ModelSlot(self._engine.send)
        self._captures = Captures(send=self._engine.send, model=self._ready)
        self._measurements = Measurements(send=self._engine.send)
        self._checks = ModelChecks(send=self._engine.send)
        self._queue = RunQueue(
            lock=self._lock,
            send=self._engine.send,
            registry=self._registry,
            model=self._model,
            captures=self._captures,
            measurements=self._measurements,
            checks=self._checks,
            on_end=around.on_end,
            run_apart=around.run_apart,
            hold_s=around.hold_s,
        )
        self._pauses = PauseLimit(
            registry=self._registry, now=around.now, limit_s=around.pause_limit_s
        )
        self._restarts = EngineRestarts(around.now)
        self._stops = StopLimit(around.now)
        self._replies = EngineReplies(self._queue, around.render, self._restarts, self._stops)
        self._idle_measuring = IdleMeasuring(self._queue, around.now)
        self._idle_model = IdleModel(
            self._queue, around.now, around.idle_limit_s, self._engine.retire
        )
        self._memory = around.memory

    def _ready(self) -> ModelReady | None:
        return self._model.held.ready if self._model.held is not None else None

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
        return self.enqueue(self.prepare(order))

    def prepare(self, order: RunOrder) -> LiveRun:
        """Return a run that is not in the queue yet, tokenised if its model is held.

        It may take seconds, so nobody may hold the lock.

        Raises:
            PromptError, InputError: The order cannot be run.
        """
        check_order(order)
        held = self._model.held_for(order.load)
        run = LiveRun.of(order)
        if held is not None:
            run.requests, run.tokenized_by = held.requests(order), held
        return run

    def enqueue(self, run: LiveRun) -> LiveRun:
        """Queue a run, tokenised or not, and return it.

        Raises:
            InputError: Too many wait, or there is no memory for more.
        """
        if self._memory.is_full:
            raise InputError(self._memory.words)
        with self._lock:
            return self._queue.enqueue(run)

    def adopt(self, trace: RunTrace) -> LiveRun:
        """Register a finished run that was read from a file, and return it."""
        with self._lock:
            run_id = f"file-{trace.info.run_id}"
            if not RUN_KEY.fullmatch(trace.info.run_id):  # no address of ours could name it
                same = (run for run in self._registry.all() if run.recorded == trace)
                return next(same, None) or self._registry.add_recorded(trace, f"file-{new_id()}")
            there = self._registry.find(run_id)
            if there is not None and there.recorded == trace:
                return there
            if there is not None:
                run_id = f"file-{new_id()}"
            return self._registry.add_recorded(trace, run_id)

    def reopen(self, run_id: str) -> LiveRun | None:
        """Return a run that is kept though the registry has forgotten it; None when it is not."""
        trace = self._recall(run_id)
        if trace is None:
            return None
        with self._lock:
            return self._registry.find(run_id) or self._registry.add_recorded(trace, run_id)

    def replay(
        self, trace: RunTrace, *, speed: float = 1.0, is_paused: bool = False, steps: int = 0
    ) -> LiveRun:
        """Play a recorded run, and return the run that shows it; it begins after some steps."""
        with self._lock:
            replay = Replay(trace, self._now, speed=speed, is_paused=is_paused, steps=steps)
            return self._registry.add(
                LiveRun(run_id=f"replay-{new_id()}", order=None, state=replay.state, replay=replay)
            )

    def change_speed(self, run: LiveRun, speed: float) -> None:
        """Play a replayed run this many times as fast as it went; others are unaffected."""
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
                message=self._message(run),
                stage=stage.stage if stage else "",
                stage_ratio=stage.ratio if stage else None,
                queue_position=self._registry.queue_position(run),
                is_held=run.is_held,
            )

    def _message(self, run: LiveRun) -> str:
        """Return the one sentence that matters most to those who watch a run."""
        waits = self._pauses.sentence(run) or self._queue.why_it_waits(run)
        return run.message or run.notice or waits

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
                self._pauses.controlled(run)
                self._engine.send(control)
                if action is Action.STOP:
                    self._stops.asked()
            elif run not in self._registry.waiting:
                return
            elif action is Action.STOP:
                self._queue.stop_waiting(run)
            else:
                run.early_controls.append(control)

    # What pages ask: the model, captures and measurements

    def engine_status(self) -> EngineStatus:
        """Return what the engine holds or is loading."""
        with self._lock:
            return self._model.status()

    def engine_words(self) -> str:
        """Return what happened to the engine that nobody asked for; empty where nothing did."""
        words = (self._restarts.words, self._idle_model.words, self._memory.words)
        return " ".join(filter(None, words))

    def codec(self) -> TextCodec | None:
        """Return the held model's text codec; None while no model is loaded."""
        held = self._model.held
        return held.codec if held is not None else None

    def preload(self, command: LoadModel) -> None:
        """Load a model before anybody asks for a run, unless one is held or coming."""
        with self._lock:
            if self._model.held is None and self._model.loading is None:
                self._model.load(command)

    def split_steps(self, run: LiveRun, *, is_wanted: bool) -> None:
        """Time the parts of some of a run's next steps, while somebody looks at them."""
        with self._lock:
            every = WATCHED_SPLIT if is_wanted else _unwatched_split(run)
            if run is self._registry.active and run.split_every != every:
                run.split_every = every
                self._engine.send(SplitSteps(run_id=run.run_id, every=every))

    def capture(self, run: LiveRun, choice: AttentionChoice, query: int | None = None) -> None:
        """Capture another layer or head of a run, or one query of it exactly."""
        self.used()
        self._open_attention(run)
        with self._lock:
            finished = run.finished
            if finished is None or query is not None:
                self._captures.ask(run.attention_key, choice, query)
            else:
                self._captures.ask_again(run.attention_key, choice, finished)
                self._queue.advance()

    def attention(self, run: LiveRun) -> Captured:
        """Return the attention weights of the run that are there, as far as it has played."""
        self._open_attention(run)
        with self._lock:
            captured = self._captures.captured(run.attention_key)
            shown = run.snapshot() if run.replay is not None else None
        return captured if shown is None else played(captured, shown)

    def whole(self, run: LiveRun) -> RunTrace | None:
        """Return the run so far with its attention weights packed, as a run file keeps them."""
        self._open_attention(run)
        with self._lock:
            trace = run.snapshot()
            made, packed = self._captures.kept(run.attention_key)
        if trace is None:
            return None
        return replace(trace, attention=packed_together(made, packed))

    def _open_attention(self, run: LiveRun) -> None:
        """Take up the attention of a run that is over, from its file where that is all there is."""
        with self._lock:
            if not run.is_over or self._captures.is_open(run.attention_key):
                return
            finished = run.finished
        if finished is None:
            return
        if run.recorded is None and run.replay is None:
            finished = self._recall(run.run_id) or finished
        with self._lock:
            self._captures.open(run.attention_key, finished)

    def measure(self, command: Measure) -> None:
        """Measure the device as soon as the engine is idle; runs wait meanwhile.

        Raises:
            InputError: A measurement waits or goes already.
        """
        with self._lock:
            self._idle_model.used()  # it waits for a model that was put away
            self._measurements.order(command)
            self._queue.advance()

    def stop_measuring(self) -> None:
        """End the measurement that goes or waits; without one, do nothing."""
        with self._lock:
            if self._measurements.is_going:
                self._stops.asked()
            self._measurements.stop()

    def measure_status(self) -> MeasureStatus:
        """Return where the measurement stands, and what was measured before."""
        return self._measurements.status

    def check_model(self) -> None:
        """Check the model held anew whenever the engine is idle; without one, do nothing."""
        with self._lock:
            if self._model.held is not None:
                self._checks.order()

    def check_status(self) -> ModelCheckStatus:
        """Return what is known of the model held by its self-check."""
        return self._checks.status

    # Who is watching

    def used(self) -> None:
        """Take it that somebody uses a page: a model that was put away comes back."""
        with self._lock:
            self._idle_model.used()

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
            if not run.viewers:
                run.looks.forget()

    def page_opened(self, run: LiveRun) -> None:
        """Count a page that is going to draw the run: one that is held waits for it."""
        with self._lock:
            run.hold.page_opened()

    def page_is_quiet(self, run: LiveRun) -> None:
        """Take it that a page has drawn the run and does nothing more; a held run may begin."""
        with self._lock:
            run.hold.page_is_quiet()
            self._queue.end_hold(run)

    def page_left(self, run: LiveRun) -> None:
        """Wait no more for a page that is gone before it was quiet."""
        with self._lock:
            run.hold.page_left()
            self._queue.end_hold(run)

    def touch(self, run: LiveRun) -> None:
        """Say that somebody looked, for pages that poll."""
        with self._lock:
            run.was_watched = True
            run.last_seen_s = self._now()

    # What the saver of runs reports

    def saved(self, run: LiveRun, *, is_whole: bool) -> None:
        """Record that what there is of a run is on disk; all of it when it has ended."""
        with self._lock:
            run.notice = ""
            if is_whole:
                run.is_unwritten = False

    def not_saved(self, run: LiveRun, sentence: str, *, is_whole: bool) -> None:
        """Record that a run could not be written, so that its viewers see why.

        Args:
            run: Which.
            sentence: Why.
            is_whole: It has ended, so memory has the only whole copy.
        """
        with self._lock:
            run.notice, run.is_unwritten = sentence, is_whole

    # The life of the app

    def abandon_unwatched(self) -> None:
        """Stop every run that nobody has watched for the grace time."""
        with self._lock:
            for run in self._registry.unwatched():
                run.is_abandoned = True
                self.control(run, Action.STOP)

    def stop_overdue(self) -> None:
        """Stop the run that has been paused for too long while others waited."""
        with self._lock:
            run = self._pauses.overdue()
            if run is not None:
                run.stop_reason = self._pauses.ended_words()
                self.control(run, Action.STOP)

    def end_frozen(self) -> None:
        """End an engine that has not heeded a stop for a while; another one is started."""
        with self._lock:
            if self._stops.is_overdue():
                self._engine.kill()

    def look_at_memory(self) -> None:
        """Say how near app and engine are to what they may take; near it, forget kept runs."""
        self._memory.look(self._engine.process_id)
        if self._memory.is_app_near:
            with self._lock:
                self._registry.forget_spare()

    def put_away_when_idle(self) -> None:
        """Put the model away that nobody has used for long."""
        with self._lock:
            self._idle_model.tick()

    def measure_when_idle(self, machine_busy: float) -> None:
        """Measure the roofs of the model held if they are missing and the engine is idle.

        Args:
            machine_busy: How busy all processors have been lately, 0 to 1.
        """
        with self._lock:
            self._idle_measuring.tick(machine_busy)

    def keep_house(self, stop: threading.Event, machine_busy: Callable[[], float]) -> None:
        """Do once a second, on a thread, what has to be done by the time.

        Args:
            stop: Set at the end.
            machine_busy: How busy all processors were since it was asked last, 0 to 1.
        """
        while not stop.wait(HOUSEKEEPING_S):
            self.abandon_unwatched()
            self.stop_overdue()
            self.end_frozen()
            self.look_at_memory()
            self.put_away_when_idle()
            self.measure_when_idle(machine_busy())

    def close(self) -> None:
        """End the engine process."""
        self._engine.close()

    def receive(self, reply: Reply) -> None:
        """Take one reply of the engine; called on the client's reading thread."""
        self._replies.receive(reply)


def _unwatched_split(run: LiveRun) -> int | None:
    """Return in which steps the parts are timed once nobody looks at them any more."""
    every = run.order.split_every if run.order is not None else None
    if every != WATCHED_SPLIT:
        return every
    return UNWATCHED_SPLIT if run.order and run.order.decode is DecodeMode.EAGER else None
