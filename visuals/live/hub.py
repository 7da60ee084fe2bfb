"""The run registry of the app process: one engine, one queue, every run's growing trace.

Plain Python, no streamlit: pages and the live route both come here. A run belongs to the hub and
not to a page, so reruns, other pages and reloads leave it alone. When nobody has watched a run for
the grace time it is stopped and the device is free.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from inference.client import EngineClient
from inference.errors import InputError, TokenByTokenError
from inference.messages import (
    Action,
    Attended,
    Command,
    Control,
    EngineDied,
    Generate,
    LoadFailed,
    Loading,
    LoadModel,
    LookRefused,
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
from inference.orders import RunOrder, build_requests, check_order, look_of
from inference.recording import Recording
from inference.records import (
    AttentionChoice,
    DecodeMode,
    LoadStage,
    Request,
    RunState,
    RunStatus,
    RunTrace,
    Unavailable,
)
from inference.roofline_records import MeasuredCeilings
from inference.text import TextCodec
from visuals.live.attention_feed import Looked
from visuals.live.looking import Looks
from visuals.live.measuring import Measurements, MeasureStatus
from visuals.live.replaying import Replay

log = logging.getLogger(__name__)

GRACE_S = 30.0  # covers a reload and a short network drop
HOUSEKEEPING_S = 1.0
LOOKED_AT_SPLIT = 8  # one in so many steps is timed in parts while somebody looks at them
QUEUE_LIMIT = 32
KEPT_RUNS = 40


class Engine(Protocol):
    """The engine process as the hub sees it."""

    def send(self, command: Command) -> None:
        """Hand a command over."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


@dataclass(slots=True, kw_only=True)
class LiveRun:
    """One run in the registry; its fields change under the hub's lock only.

    Attributes:
        token: Secret that the live route asks for.
        recorded: The finished trace of a run that was opened from a file; None for a run made here.
        early_controls: Steps, pauses and paces asked for before the engine took the run up.
        replay: How far a recorded run that plays again has come; None for all others.
        patience: How many grace times it may go unwatched.
        is_kept: False for a run that is no use on disk, such as a warm-up.
        steps_per_s: The pace asked for last; None for as fast as it goes.
        notice: What the viewer must know while the run goes on; empty when all is well.
        split_every: One in so many steps is timed in parts; None when none is.
    """

    run_id: str
    token: str
    order: RunOrder | None
    state: RunState
    message: str = ""
    requests: tuple[Request, ...] = ()
    recording: Recording | None = None
    recorded: RunTrace | None = None
    unavailable: tuple[Unavailable, ...] = ()
    viewers: int = 0
    last_seen_s: float = 0.0
    is_abandoned: bool = False
    early_controls: list[Control] = field(default_factory=list)
    replay: Replay | None = None
    patience: int = 1
    is_kept: bool = True
    steps_per_s: float | None = None
    notice: str = ""
    split_every: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """What the engine is doing about its model, for a page that waits.

    Attributes:
        ready: The model held; None while there is none.
        stage: What is being loaded; None when nothing is.
        error: Why the last load failed; empty when it did not.
    """

    ready: ModelReady | None
    stage: LoadStage | None
    error: str


@dataclass(slots=True)
class _Held:
    """The model side of the engine."""

    ready: ModelReady | None = None
    codec: TextCodec | None = None
    loading: LoadModel | None = None
    stage: LoadStage | None = None
    error: str = ""


@dataclass(slots=True)
class _Registry:
    """All runs by id, those waiting in order, and the one on the engine."""

    runs: dict[str, LiveRun] = field(default_factory=dict)
    waiting: deque[LiveRun] = field(default_factory=deque)
    active: LiveRun | None = None


class Hub:
    """The one registry of the process."""

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
        self._grace_s = grace_s
        self._held = _Held()
        self._registry = _Registry()
        self.on_end = []
        self._engine = start_engine(self.receive)
        self._looks = Looks(send=self._engine.send)
        self._measurements = Measurements(send=self._engine.send)

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever needs several calls to be one, such as a group that goes on."""
        return self._lock

    # What pages ask

    def submit(self, order: RunOrder) -> LiveRun:
        """Queue a run and return it.

        Raises:
            PromptError, InputError: The order cannot be run; nothing was queued.
        """
        with self._lock:
            check_order(order)
            if self._is_held(order):
                self._requests(order)  # says at once what does not fit
            if len(self._registry.waiting) >= QUEUE_LIMIT:
                msg = f"{QUEUE_LIMIT} runs are waiting already; try again when some have finished"
                raise InputError(msg)
            run = LiveRun(
                run_id=secrets.token_urlsafe(6),
                token=secrets.token_urlsafe(16),
                order=order,
                steps_per_s=order.steps_per_s,
                state=RunState.QUEUED,
                last_seen_s=self._now(),
            )
            self._registry.runs[run.run_id] = run
            self._registry.waiting.append(run)
            self._forget_old()
            self._advance()
            return run

    def adopt(self, trace: RunTrace) -> LiveRun:
        """Register a finished run that was read from a file, and return it."""
        with self._lock:
            run_id = f"file-{trace.info.run_id}"
            known = self._registry.runs.get(run_id)
            if known is not None and known.recorded == trace:
                return known
            if known is not None:
                run_id = f"file-{secrets.token_urlsafe(6)}"
            return self._registered(trace, run_id)

    def reopen(self, run_id: str) -> LiveRun | None:
        """Return a run that is kept though the registry has forgotten it; None when it is not."""
        trace = self.recall(run_id) if self.recall is not None else None
        if trace is None:
            return None
        with self._lock:
            return self._registry.runs.get(run_id) or self._registered(trace, run_id)

    def _registered(self, trace: RunTrace, run_id: str) -> LiveRun:
        """Register a finished run under this id."""
        run = LiveRun(
            run_id=run_id,
            token=secrets.token_urlsafe(16),
            order=None,
            state=trace.state if trace.state.is_final else RunState.STOPPED,
            message=trace.message,
            recorded=trace,
            last_seen_s=self._now(),
        )
        self._registry.runs[run_id] = run
        self._forget_old()
        return run

    def replay(self, trace: RunTrace, *, speed: float = 1.0, is_paused: bool = False) -> LiveRun:
        """Play a recorded run from its beginning, and return the run that shows it."""
        with self._lock:
            replay = Replay(trace, self._now, speed=speed, is_paused=is_paused)
            run = LiveRun(
                run_id=f"replay-{secrets.token_urlsafe(6)}",
                token=secrets.token_urlsafe(16),
                order=None,
                state=replay.state,
                replay=replay,
                last_seen_s=self._now(),
            )
            self._registry.runs[run.run_id] = run
            self._forget_old()
            return run

    def change_speed(self, run: LiveRun, speed: float) -> None:
        """Play a replayed run so many times as fast as it went; others take no notice."""
        with self._lock:
            if run.replay is not None:
                run.replay.change_speed(speed)

    def find(self, run_id: str) -> LiveRun | None:
        """Return the run with this id, None when there is none."""
        return self._registry.runs.get(run_id)

    def runs(self) -> tuple[LiveRun, ...]:
        """Return every run in the registry."""
        with self._lock:
            return tuple(self._registry.runs.values())

    def snapshot(self, run: LiveRun) -> RunTrace | None:
        """Return the run so far; None before the engine took it up."""
        with self._lock:
            if run.recorded is not None:
                return run.recorded
            if run.replay is not None:
                shown = run.replay.snapshot()
                run.state, run.message = run.replay.state, shown.message
                return shown
            if run.recording is None:
                return None
            return run.recording.snapshot(run.state, run.message, run.unavailable)

    def status(self, run: LiveRun) -> RunStatus:
        """Return where the run stands."""
        with self._lock:
            if run.replay is not None:
                run.replay.advance()
                run.state = run.replay.state
            stage = self._held.stage if run.state is RunState.LOADING else None
            waiting = self._registry.waiting
            return RunStatus(
                state=run.state,
                message=run.message or run.notice or self._why_it_waits(run),
                stage=stage.stage if stage else "",
                stage_ratio=stage.ratio if stage else None,
                queue_position=waiting.index(run) + 1 if run in waiting else None,
            )

    def engine_status(self) -> EngineStatus:
        """Return what the engine holds or is loading."""
        with self._lock:
            held = self._held
            stage = held.stage if held.loading is not None else None
            return EngineStatus(ready=held.ready, stage=stage, error=held.error)

    def codec(self) -> TextCodec | None:
        """Return the held model's text codec; None while no model is loaded."""
        return self._held.codec

    def preload(self, command: LoadModel) -> None:
        """Load a model before anybody asks for a run, unless one is held or coming."""
        with self._lock:
            if self._held.ready is None and self._held.loading is None:
                self._load(command)

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

    # What the attention weights were

    def split_steps(self, run: LiveRun, *, is_wanted: bool) -> None:
        """Time the parts of some of a run's next steps, while somebody looks at them."""
        with self._lock:
            every = LOOKED_AT_SPLIT if is_wanted else None
            if run is self._registry.active and run.split_every != every:
                run.split_every = every
                self._engine.send(SplitSteps(run_id=run.run_id, every=every))

    def look_at(self, run: LiveRun, choice: AttentionChoice, query: int | None = None) -> None:
        """Look at another layer or head of a run, or at one query of its prompt exactly."""
        with self._lock:
            self._looks.ask(run.run_id, choice, query)

    def attention(self, run: LiveRun) -> Looked:
        """Return what is known of the run's attention weights."""
        with self._lock:
            return self._looks.looked(run.run_id, is_from_file=run.order is None)

    # Measurements between two runs

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
            run.last_seen_s = self._now()

    def leave(self, run: LiveRun) -> None:
        """Count one viewer less; the grace time begins with the last."""
        with self._lock:
            run.viewers -= 1
            run.last_seen_s = self._now()

    def touch(self, run: LiveRun) -> None:
        """Say that somebody looked, for pages that poll."""
        run.last_seen_s = self._now()

    def abandon_unwatched(self) -> None:
        """Stop every run that nobody has watched for the grace time."""
        with self._lock:
            registry = self._registry
            alive = [*registry.waiting] + ([registry.active] if registry.active else [])
            for run in alive:
                grace_s = self._grace_s * run.patience
                if run.viewers == 0 and self._now() - run.last_seen_s > grace_s:
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
            elif isinstance(reply, Attended | LookRefused):
                self._looks.receive(reply)
            elif isinstance(reply, Loading):
                self._held.stage = reply.stage
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
            self._tell_runs(measured)
        self._advance()

    def _tell_runs(self, measured: MeasuredCeilings) -> None:
        """Give the roofs to runs that were made here before they were known."""
        for run in self._registry.runs.values():
            recording = run.recording
            if recording is not None and recording.info.device == measured.device:
                recording.info = replace(recording.info, ceilings=measured.ceilings)

    def _receive_run(self, reply: Stepped | Sampled | RunStarted | StateChanged | RunEnded) -> None:
        run, codec = self._registry.active, self._held.codec
        if run is None or codec is None:
            return  # the last words of a run that is over
        if isinstance(reply, RunStarted):
            run.recording = Recording(reply.info, run.requests, codec)
            self._looks.started(run.run_id, run.recording)
            if run.state in (RunState.QUEUED, RunState.LOADING):
                run.state = RunState.RUNNING
        elif isinstance(reply, StateChanged):
            run.state = reply.state
        elif isinstance(reply, RunEnded):
            run.unavailable = reply.unavailable
            self._registry.active = None
            self._finish(run, reply.state, reply.message)
            self._advance()
        elif run.recording is not None:
            if isinstance(reply, Stepped):
                run.recording.add(reply.event)
            else:
                run.recording.add_sample(reply.sample)

    def _model_is_ready(self, reply: ModelReady) -> None:
        """Make the text codec, which takes a second or two, before anybody waits for the lock."""
        try:
            codec = TextCodec.from_files(reply.tokenizer_files)
        except TokenByTokenError as error:
            with self._lock:
                self._loading_failed(str(error))
            return
        with contextlib.suppress(TokenByTokenError):  # a template may refuse an empty prompt
            codec.templated("")  # the first call imports the renderer; nobody waits for it here
        with self._lock:
            self._held = _Held(ready=reply, codec=codec)
            self._measurements.model_is_held(reply.ceilings)
            self._advance()

    def _loading_failed(self, sentence: str) -> None:
        wanted = self._held.loading
        self._held = _Held(error=sentence)
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
        if self._held.loading is not None:
            self._loading_failed(sentence)
            return
        self._held = _Held()
        self._registry.active = None
        if active is not None:
            self._finish(active, RunState.FAILED, sentence)
        self._advance()

    # Under the lock

    def _advance(self) -> None:
        """Bring the first run in the queue as far as it can go."""
        registry = self._registry
        if registry.active is None and self._held.loading is None:
            self._measurements.begin()
        while self._is_idle and registry.waiting:
            run = registry.waiting[0]
            order = run.order
            if order is None:
                registry.waiting.popleft()
            elif not self._is_held(order):
                run.state = RunState.LOADING
                self._load(_wanted(run))
            else:
                registry.waiting.popleft()
                self._begin(run, order)

    def _why_it_waits(self, run: LiveRun) -> str:
        is_held_up = run in self._registry.waiting and self._measurements.is_going
        return "The device is being measured; the run begins after that." if is_held_up else ""

    @property
    def _is_idle(self) -> bool:
        """True while the engine runs, loads and measures nothing."""
        is_free = self._registry.active is None and self._held.loading is None
        return is_free and not self._measurements.is_going

    def _begin(self, run: LiveRun, order: RunOrder) -> None:
        """Send one run to the engine, or fail it with the reason."""
        try:
            run.requests = self._requests(order)
        except TokenByTokenError as error:
            self._finish(run, RunState.FAILED, str(error))
            return
        # What a decode step is prepared with shows like the loading of a model.
        is_prepared = order.decode is not DecodeMode.EAGER
        run.state = RunState.LOADING if is_prepared else RunState.QUEUED
        self._registry.active = run
        run.split_every = order.split_every
        look = look_of(order, self._held.ready.shape) if self._held.ready is not None else None
        self._looks.begin(run.run_id, look)
        self._engine.send(
            Generate(
                run_id=run.run_id,
                requests=run.requests,
                seed=order.seed,
                is_paused=order.is_paused,
                steps_per_s=order.steps_per_s,
                chunk_tokens=order.chunk_tokens,
                cache=order.cache,
                look=look,
                split_every=order.split_every,
                decode=order.decode,
                plan=order.plan,
            )
        )
        for control in run.early_controls:
            self._engine.send(control)

    def _requests(self, order: RunOrder) -> tuple[Request, ...]:
        held = self._held
        if held.codec is None or held.ready is None:
            msg = "no model is loaded"
            raise InputError(msg)
        return build_requests(order, held.codec, held.ready.context_limit)

    def _load(self, command: LoadModel) -> None:
        self._held = _Held(loading=command, stage=LoadStage(stage="starting the engine"))
        self._engine.send(command)

    def _is_held(self, order: RunOrder) -> bool:
        ready = self._held.ready
        return ready is not None and ready.request == order.load

    def _finish(self, run: LiveRun, state: RunState, message: str) -> None:
        run.state, run.message = state, message
        if run.is_abandoned and state is RunState.STOPPED:
            run.state = RunState.ABANDONED
            grace_s = self._grace_s * run.patience
            run.message = f"stopped because nobody had watched for {grace_s:.0f} s"
        self._looks.ended(run.run_id)
        for tell in self.on_end:
            tell(run)

    def _forget_old(self) -> None:
        """Drop the oldest finished runs nobody watches beyond the number kept."""
        runs = self._registry.runs
        spare = [run for run in runs.values() if self._is_spare(run)]
        for run in spare[: max(0, len(runs) - KEPT_RUNS)]:
            del runs[run.run_id]

    def _is_spare(self, run: LiveRun) -> bool:
        """Tell whether nothing is lost with a run; one that plays again is made anew at a press."""
        is_idle = run.viewers == 0
        if run.replay is not None:
            return is_idle and self._now() - run.last_seen_s > self._grace_s
        return is_idle and run.state.is_final


def _exit_words(exit_code: int | None) -> str:
    """Return what an exit code says: a process killed from outside often was out of memory."""
    if exit_code is not None and -exit_code == signal.SIGKILL:
        return f"exit code {exit_code}: killed, by a system short of memory perhaps"
    return f"exit code {exit_code}"


def _wanted(run: LiveRun) -> LoadModel:
    """Return the model a waiting run needs."""
    return run.order.load if run.order is not None else LoadModel(model="default")


@cache
def app_hub() -> Hub:
    """Return the process's one hub; the engine starts with its first command."""
    return Hub(grace_s=float(os.environ.get("TOKEN_BY_TOKEN_GRACE_S", GRACE_S)))
