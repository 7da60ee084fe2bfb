"""The engine process: holds one model on the one device and runs what it is told, one at a time.

Commands come in and replies go out over one pipe (inference/messages.py). Between two steps, and in
no step time, the process looks for a pause, a step, a stop or another pace.
"""

from __future__ import annotations

import dataclasses
import gc
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection

from inference.calibration.ceilings_store import saved_ceilings
from inference.engine.caches import cache_options
from inference.engine.clock import StepClock, clock_for, marks_for
from inference.engine.free_memory import check_memory
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.part_times import PartMeter
from inference.engine.row_backend import TorchRowBackend
from inference.engine.step_capture import decode_options
from inference.models.attention_implementations import attention_options
from inference.models.devices import device_options, gpu_id
from inference.models.loading import LoadedModel, load_model
from inference.process.measurements import Surveyor, place_of
from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
    Command,
    Generate,
    LoadFailed,
    Loading,
    LoadModel,
    MeasureCeilings,
    ModelReady,
    RunEnded,
    RunStarted,
    Sampled,
    Shutdown,
    SplitSteps,
    Stepped,
    SweepBatches,
    SweepTokens,
)
from inference.process.run_info import run_info
from inference.process.step_gate import Outbox, StepGate
from inference.process.telemetry import Telemetry
from inference.records.costs import Ceilings
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import DecodeMode, Policy
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent

PREPARING = {
    DecodeMode.GRAPH: "recording the decode step",
    DecodeMode.COMPILED: "compiling the decode step, which takes minutes the first time",
}
NO_CAPTURE = (
    "rows come and go in a continuous batch, so their attention is not kept; use the static policy"
)


def serve(connection: Connection) -> None:
    """Obey commands until told to shut down or the app is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the app's to handle
    engine_host = EngineHost(connection)
    while True:
        try:
            command = engine_host.later.pop(0) if engine_host.later else connection.recv()
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
        self._policy = Policy.STATIC
        self._surveyor = Surveyor(connection, self._outbox.put)

    @property
    def later(self) -> list[Command]:
        """Commands that came in while something was measured; obey them before any other."""
        return self._surveyor.later

    def obey(self, command: Command) -> bool:
        """Carry out one command; False when the process should end."""
        if isinstance(command, LoadModel):
            self._load(command)
        elif isinstance(command, Generate):
            return self._generate(command)
        elif isinstance(command, CaptureAttention):
            self._capture(command)
        elif isinstance(command, (MeasureCeilings, SweepTokens, SweepBatches)):
            clock = self._clock or clock_for(place_of(self._loaded)[0])
            self._surveyor.measure(command, self._loaded, clock)
        return True  # a Control for a run that has ended asks for nothing

    def _load(self, command: LoadModel) -> None:
        self._loaded = self._engine = self._clock = None
        gc.collect()  # the old weights go before the new ones come
        try:
            loaded = load_model(
                command.model,
                dtype=command.dtype,
                device=command.device,
                is_plain=command.is_plain,
                attention=command.attention,
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
                ceilings=saved_ceilings(*place_of(loaded)),
                decodes=decode_options(loaded.model.device),
                devices=device_options(),
                device_note=loaded.device_note,
                attentions=attention_options(loaded.model),
            )
        )

    def _hold(self, loaded: LoadedModel) -> None:
        limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
        clock = clock_for(loaded.model.device)
        marks = marks_for(loaded.model.device)
        meter = PartMeter(loaded.model, marks) if marks is not None else None
        backend = TorchRowBackend(loaded.model)
        if meter is not None:
            backend.is_watched = lambda: meter.is_on
        self._engine = Engine(backend, clock, limits, meter)
        self._loaded, self._clock = loaded, clock
        gc.collect()
        gc.freeze()  # the weights' wrappers are never garbage; do not look at them again

    def _generate(self, command: Generate) -> bool:
        loaded, engine, clock = self._loaded, self._engine, self._clock
        if loaded is None or engine is None or clock is None:
            self._outbox.put(_ended(command, RunState.FAILED, "no model is loaded"))
            return True
        prepared = self._prepare(command, engine)
        options = prepared[0]
        zero_s = clock.now_s()
        self._run_id, self._policy = command.run_id, command.plan.policy
        info = run_info(loaded, clock, command, prepared, _kept_roofs(loaded))
        self._outbox.put(RunStarted(info=info))
        self._capture(CaptureAttention(run_id=command.run_id, choice=None))
        if command.capture is not None:
            self._capture(CaptureAttention(run_id=command.run_id, choice=command.capture))
        telemetry = Telemetry(
            clock,
            on_sample=lambda sample: self._outbox.put(
                Sampled(run_id=command.run_id, sample=sample)
            ),
            gpu=gpu_id(loaded.model.device),
        )
        gate = StepGate(self._connection, command, clock, self._outbox.put, self._capture_for)
        engine.idle = gate.idle
        telemetry.start(zero_s)
        try:
            check_memory(loaded, command.requests, command.plan)
            steps = engine.generate(
                command.requests, seed=command.seed, zero_s=zero_s, options=options
            )
            ended = self._run(gate, steps, command)
        except TokenByTokenError as error:
            ended = _ended(command, RunState.FAILED, str(error))
        finally:
            telemetry.stop()
        self._outbox.put(dataclasses.replace(ended, unavailable=telemetry.unavailable()))
        return not gate.is_shutdown

    def _prepare(self, command: Generate, engine: Engine) -> tuple[GenerationOptions, str]:
        """Get ready to decode as asked; return the run's options, and why they are others."""
        if command.decode is not DecodeMode.EAGER:
            self._outbox.put(Loading(stage=LoadStage(stage=PREPARING[command.decode])))
        return engine.prepare(
            command.requests,
            GenerationOptions(
                chunk_tokens=command.chunk_tokens,
                cache=command.cache,
                split_every=command.split_every,
                plan=command.plan,
                decode=command.decode,
            ),
        )

    def _run(self, gate: StepGate, steps: Iterator[StepEvent], command: Generate) -> RunEnded:
        """Take one step after another, waiting for the turn before each."""
        to_come = len(command.requests)
        while gate.wait():
            event = next(steps, None)
            if event is None and gate.is_stopped:
                break
            if event is None:
                return _ended(command, RunState.DONE)
            self._outbox.put(Stepped(run_id=command.run_id, event=event))
            self._show_attention()
            to_come -= sum(row.finish is not None for row in event.rows)
            if not to_come:
                gate.release()  # nothing is left to wait for
        return _ended(command, RunState.STOPPED, "stopped by the user")

    def _capture_for(self, command: CaptureAttention | SplitSteps) -> None:
        """Look at something else in the run that goes."""
        if isinstance(command, CaptureAttention):
            self._capture(command)
        elif self._engine is not None and command.run_id == self._run_id:
            self._engine.split(command.every)

    def _capture(self, command: CaptureAttention) -> None:
        """Look at another layer, and show again what is still known of the prompt."""
        engine = self._engine
        if engine is None or command.run_id != self._run_id:
            return  # of a run that another one has followed nothing is left
        if self._policy is Policy.CONTINUOUS and command.choice is not None:
            self._outbox.put(CaptureRefused(run_id=command.run_id, sentence=NO_CAPTURE))
            return
        try:
            engine.capture(command.choice)
        except InputError as error:
            self._outbox.put(CaptureRefused(run_id=command.run_id, sentence=str(error)))
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


def _kept_roofs(loaded: LoadedModel) -> Ceilings | None:
    """Return the roofs that were measured for this device and dtype, if any."""
    kept = saved_ceilings(*place_of(loaded))
    return kept.ceilings if kept is not None else None


def _ended(command: Generate, state: RunState, message: str = "") -> RunEnded:
    return RunEnded(run_id=command.run_id, state=state, message=message)
