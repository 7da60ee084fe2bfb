"""The engine process: holds one model on the one device and runs what it is told, one at a time.

Commands come in and replies go out over one pipe (inference/messages.py). Between two steps, and in
no lap, the process looks for a pause, a step, a stop or another pace.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib.metadata
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection

from inference.backend import TorchBackend
from inference.caches import cache_options
from inference.engine import Engine, GenerationLimits, GenerationOptions
from inference.errors import InputError, TokenByTokenError
from inference.loading import LoadedModel, load_model
from inference.messages import (
    Attended,
    Command,
    Generate,
    LoadFailed,
    Loading,
    LoadModel,
    LookAt,
    LookRefused,
    ModelReady,
    RunEnded,
    RunStarted,
    Sampled,
    Shutdown,
    Stepped,
)
from inference.records import RunInfo, RunState, StepEvent
from inference.telemetry import Telemetry
from inference.timing import StepClock, clock_for
from inference.turns import Outbox, Turn

VERSIONED = ("torch", "transformers")


def serve(connection: Connection) -> None:
    """Obey commands until told to shut down or the app is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the app's to handle
    engine_host = EngineHost(connection)
    while True:
        try:
            command: Command = connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(command, Shutdown) or not engine_host.obey(command):
            return


class EngineHost:
    """The model held and the engine over it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._outbox = Outbox(connection)
        self._loaded: LoadedModel | None = None
        self._engine: Engine | None = None
        self._clock: StepClock | None = None
        self._run_id = ""

    def obey(self, command: Command) -> bool:
        """Carry out one command; False when the process should end."""
        if isinstance(command, LoadModel):
            self._load(command)
        elif isinstance(command, Generate):
            return self._generate(command)
        elif isinstance(command, LookAt):
            self._look(command)
        return True  # a Control for a run that has ended asks for nothing

    def _load(self, command: LoadModel) -> None:
        self._loaded = self._engine = self._clock = None
        gc.collect()  # the old weights go before the new ones come
        try:
            loaded = load_model(
                command.model,
                dtype=command.dtype,
                device=command.device,
                on_stage=lambda stage: self._outbox.put(Loading(stage=stage)),
            )
            self._hold(loaded)
        except TokenByTokenError as error:
            self._outbox.put(LoadFailed(request=command, sentence=str(error)))
            return
        self._outbox.put(
            ModelReady(
                request=command,
                model_id=loaded.model_id,
                shape=loaded.shape,
                device=loaded.device,
                tokenizer_files=loaded.tokenizer_files,
                context_limit=loaded.context_limit,
                caches=cache_options(loaded.model),
            )
        )

    def _hold(self, loaded: LoadedModel) -> None:
        limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
        clock = clock_for(loaded.model.device)
        self._engine = Engine(TorchBackend(loaded.model), clock, limits)
        self._loaded, self._clock = loaded, clock
        gc.collect()
        gc.freeze()  # the weights' wrappers are never garbage; do not look at them again

    def _generate(self, command: Generate) -> bool:
        loaded, engine, clock = self._loaded, self._engine, self._clock
        if loaded is None or engine is None or clock is None:
            self._outbox.put(_ended(command, RunState.FAILED, "no model is loaded"))
            return True
        zero_s = clock.now_s()
        self._run_id = command.run_id
        self._outbox.put(RunStarted(info=run_info(loaded, clock, command)))
        self._look(LookAt(run_id=command.run_id, choice=None))
        if command.look is not None:
            self._look(LookAt(run_id=command.run_id, choice=command.look))
        telemetry = Telemetry(
            clock,
            on_sample=lambda sample: self._outbox.put(
                Sampled(run_id=command.run_id, sample=sample)
            ),
        )
        turn = Turn(self._connection, command, clock, self._outbox.put, self._look)
        telemetry.start(zero_s)
        try:
            options = GenerationOptions(chunk_tokens=command.chunk_tokens, cache=command.cache)
            steps = engine.generate(
                command.requests, seed=command.seed, zero_s=zero_s, options=options
            )
            ended = self._run(turn, steps, command)
        except TokenByTokenError as error:
            ended = _ended(command, RunState.FAILED, str(error))
        finally:
            telemetry.stop()
        self._outbox.put(dataclasses.replace(ended, unavailable=telemetry.unavailable()))
        return not turn.is_shutdown

    def _run(self, turn: Turn, steps: Iterator[StepEvent], command: Generate) -> RunEnded:
        """Take one step after another, waiting for the turn before each."""
        while turn.wait():
            event = next(steps, None)
            if event is None:
                return _ended(command, RunState.DONE)
            self._outbox.put(Stepped(run_id=command.run_id, event=event))
            self._show_attention()
            if all(row.finish is not None for row in event.rows) and event.rows:
                turn.release()  # nothing is left to wait for
        return _ended(command, RunState.STOPPED, "stopped by the user")

    def _look(self, command: LookAt) -> None:
        """Look at another layer, and show again what is still known of the prompt."""
        engine = self._engine
        if engine is None or command.run_id != self._run_id:
            return  # of a run that another one has followed nothing is left
        try:
            engine.look_at(command.choice)
        except InputError as error:
            self._outbox.put(LookRefused(run_id=command.run_id, sentence=str(error)))
            return
        for seen in engine.recall(command.query):
            self._outbox.put(
                Attended(
                    run_id=command.run_id,
                    step_index=seen.step_index,
                    attention=seen,
                    query=command.query,
                )
            )

    def _show_attention(self) -> None:
        """Send what the latest step attended to, if anyone looks."""
        seen = self._engine.attention if self._engine is not None else None
        if seen is not None:
            self._outbox.put(
                Attended(run_id=self._run_id, step_index=seen.step_index, attention=seen)
            )


def run_info(loaded: LoadedModel, clock: StepClock, command: Generate) -> RunInfo:
    """Return what a run on this model is made with, dated now."""
    return RunInfo(
        run_id=command.run_id,
        model_id=loaded.model_id,
        shape=loaded.shape,
        device=loaded.device,
        attention=loaded.attention,
        clock=clock.name,
        seed=command.seed,
        started_at=datetime.now(UTC),
        versions=tuple((name, importlib.metadata.version(name)) for name in VERSIONED),
        cache=command.cache,
        chunk_tokens=command.chunk_tokens,
    )


def _ended(command: Generate, state: RunState, message: str = "") -> RunEnded:
    return RunEnded(run_id=command.run_id, state=state, message=message)
