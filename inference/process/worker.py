"""The engine process: holds one model on the one device and carries out commands, one at a time.

Commands come in and replies go out over one pipe (messages.py). Between two steps, and in no step
time, the process checks for a pause, a step, a stop or another pace.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Protocol

from inference.calibration.ceilings_store import saved_ceilings
from inference.engine.caches import cache_options
from inference.engine.clock import clock_for
from inference.engine.graph_capture import CAPTURES
from inference.engine.step_capture import decode_options
from inference.models.attention_implementations import attention_options
from inference.models.devices import device_options
from inference.models.loading import LoadedModel, load_model
from inference.models.process_memory import held_bytes, lift_limit, limit_growth, shares_from
from inference.process.idle_checks import IdleChecks
from inference.process.idle_work import IdleWork
from inference.process.measurements import Surveyor, device_and_dtype
from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
    CheckModel,
    Command,
    Generate,
    LoadFailed,
    Loading,
    LoadModel,
    Measure,
    MeasureCeilings,
    ModelReady,
    Recapture,
    RecaptureEnded,
    RunEnded,
    RunStarted,
    Sampled,
    Shutdown,
    SplitSteps,
    Stepped,
    SweepBatches,
    SweepTokens,
)
from inference.process.recaptures import Recapturer
from inference.process.runner import Runner, RunPlan, generation_options
from inference.process.step_gate import Outbox, StepGate
from inference.records.checks import SelfCheck
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import Policy
from inference.records.run import RunInfo
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable

NO_CAPTURE = (
    "attention is not captured while a continuous batch runs, where rows come and go; use the "
    "static policy, or choose a layer once the run is over"
)


class Host(Protocol):
    """What obeys the commands.

    Attributes:
        idle: What is done while none comes.
    """

    idle: IdleWork

    @property
    def later(self) -> list[Command]:
        """Commands received already, to be obeyed before any other."""
        ...

    def obey(self, command: Command) -> bool:
        """Carry out one command; False when the process should end."""
        ...


def run_engine(connection: Connection) -> None:
    """Be the engine process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the app's to handle
    lift_limit()  # the app's own, which a process that it starts inherits
    serve(connection, EngineHost)


def serve(connection: Connection, host_of: Callable[[Connection], Host]) -> None:
    """Obey commands until one says to shut down or the app is gone; work while none comes."""
    host = host_of(connection)
    while True:
        try:
            if not host.later:
                host.idle.until_command()
            command = host.later.pop(0) if host.later else connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(command, Shutdown) or not host.obey(command):
            return


class EngineHost:
    """The model held, the engine over it, and the latest run.

    Attributes:
        idle: What is done while no command comes.
    """

    def __init__(self, connection: Connection) -> None:
        self.idle = IdleWork(connection)
        self._connection = connection
        self._outbox = Outbox(connection)
        self._runner: Runner | None = None
        self._run: AppRun | None = None
        self._surveyor = Surveyor(connection, self._outbox.put)
        self._checks = IdleChecks(self.idle, self._outbox.put)
        self._recaptures = Recapturer(self._outbox.put, self._is_called)

    @property
    def later(self) -> list[Command]:
        """Commands that came in during a measurement; obey them before any other."""
        return self._surveyor.later

    def _is_called(self) -> bool:
        """Return whether a command waits, received or not."""
        return bool(self.later) or self.idle.is_called()

    def obey(self, command: Command) -> bool:
        """Carry out one command; False when the process should end."""
        if isinstance(command, LoadModel):
            self._load(command)
        elif isinstance(command, Generate):
            return self._generate(command)
        elif isinstance(command, CaptureAttention):
            self._capture(command)
        elif isinstance(command, Recapture):
            self._recapture(command)
        elif isinstance(command, (MeasureCeilings, SweepTokens, SweepBatches)):
            self._measure(command)
        elif isinstance(command, CheckModel) and self._runner is not None:
            self._checks.check_anew(self._runner.loaded)
        return True  # a Control for a run that has ended asks for nothing

    def _load(self, command: LoadModel) -> None:
        self._runner = self._run = None
        self._checks.forget()
        self._recaptures.forget()
        # The old weights go before the new ones come. Hooks and kernels make cycles with them, and
        # what is frozen is never collected.
        gc.unfreeze()
        gc.collect()
        CAPTURES.release_memory()
        lift_limit()  # files that are mapped to be read count against it, and cost nothing
        try:
            loaded = load_model(
                command.model,
                dtype=command.dtype,
                device=command.device,
                is_plain=command.is_plain,
                attention=command.attention,
                on_stage=lambda stage: self._outbox.put(Loading(stage=stage)),
                most_bytes=_memory_left(),
            )
            self._runner = Runner(loaded)
        except TokenByTokenError as error:
            self._outbox.put(LoadFailed(request=command, sentence=str(error)))
            return
        gc.collect()
        gc.freeze()  # the weights' wrappers are never garbage; leave them out of later collections
        left_bytes = _memory_left()
        if left_bytes is not None:
            limit_growth(left_bytes)
        kept = self._checks.check_once(loaded)
        self._outbox.put(_model_ready(command, loaded, kept))

    def _capture(self, command: CaptureAttention) -> None:
        """Answer from the latest run, or from what was captured anew since."""
        if self._run is not None:
            self._run.obey(command)
        elif self._runner is not None:
            self._recaptures.recall(command, self._runner.backend)

    def _recapture(self, command: Recapture) -> None:
        if self._runner is None:
            sentence = "no model is loaded any more"
            self._outbox.put(RecaptureEnded(number=command.number, sentence=sentence))
            return
        self._run = None  # what the engine remembers of its attention gives way
        self._recaptures.carry_out(command, self._runner.backend)

    def _measure(self, command: Measure) -> None:
        runner = self._runner
        loaded = None if runner is None else runner.loaded
        clock = clock_for(device_and_dtype(None)[0]) if runner is None else runner.clock
        self._surveyor.measure(command, loaded, clock)

    def _generate(self, command: Generate) -> bool:
        runner = self._runner
        if runner is None:
            sentence = "no model is loaded; load one, then start the run again"
            self._outbox.put(
                RunEnded(run_id=command.run_id, state=RunState.FAILED, message=sentence)
            )
            return True
        kept = saved_ceilings(*device_and_dtype(runner.loaded))
        plan = RunPlan(
            run_id=command.run_id,
            requests=command.requests,
            seed=command.seed,
            options=generation_options(command),
            ceilings=None if kept is None else kept.ceilings,
            check_warning=self._checks.warning,
        )
        self._recaptures.forget()
        self._run = AppRun(command, runner, self._connection, self._outbox)
        runner.run(plan, self._run)
        return not self._run.gate.is_shutdown


class AppRun:
    """One run that the app steers: every step is sent, and its attention where that is captured.

    Attributes:
        gate: Lets each step begin when the app says so.
    """

    def __init__(
        self, command: Generate, runner: Runner, connection: Connection, outbox: Outbox
    ) -> None:
        self._command = command
        self._engine = runner.engine
        self._outbox = outbox
        self.gate = StepGate(connection, command, runner.clock, outbox.put, self.obey)

    def preparing(self, stage: LoadStage) -> None:
        """Send what is being prepared."""
        self._outbox.put(Loading(stage=stage))

    def started(self, info: RunInfo) -> None:
        """Send the run's description, capture what the app asked for, and wait where it is held."""
        self._outbox.put(RunStarted(info=info))
        self._engine.capture(None)
        if self._command.capture is not None:
            self.obey(CaptureAttention(run_id=self._command.run_id, choice=self._command.capture))
        self.gate.begin()
        self.gate.hold()

    def may_step(self) -> bool:
        """Wait for the gate."""
        return self.gate.wait()

    def idle(self, seconds: float) -> bool:
        """Wait for a request, and listen meanwhile."""
        return self.gate.idle(seconds)

    def stepped(self, event: StepEvent) -> None:
        """Send one step, and its attention where that is captured."""
        self._outbox.put(Stepped(run_id=self._command.run_id, event=event))
        attention = self._engine.attention
        if attention is not None:
            self._outbox.put(
                Attended(
                    run_id=self._command.run_id,
                    step_index=attention.step_index,
                    attention=attention,
                )
            )

    def sampled(self, sample: TelemetrySample) -> None:
        """Send one sample."""
        self._outbox.put(Sampled(run_id=self._command.run_id, sample=sample))

    def ended(self, state: RunState, message: str, unavailable: tuple[Unavailable, ...]) -> None:
        """Send the end."""
        self._outbox.put(
            RunEnded(
                run_id=self._command.run_id,
                state=state,
                message=message,
                unavailable=unavailable,
            )
        )

    def obey(self, command: CaptureAttention | SplitSteps) -> None:
        """Capture or time something else from the next step on; also after the run's end."""
        if command.run_id != self._command.run_id:
            return  # nothing is left of an earlier run
        if isinstance(command, SplitSteps):
            self._engine.split(command.every)
            return
        try:
            self._check_policy(command)
            self._engine.capture(command.choice)
        except InputError as error:
            self._outbox.put(CaptureRefused(run_id=command.run_id, sentence=str(error)))
            return
        for attention in self._engine.recall(command.query):
            self._outbox.put(
                Attended(
                    run_id=command.run_id,
                    step_index=attention.step_index,
                    attention=attention,
                    query=command.query,
                )
            )

    def _check_policy(self, command: CaptureAttention) -> None:
        """Raise InputError unless the batch keeps its rows, or nothing is to be captured."""
        if self._command.plan.policy is Policy.CONTINUOUS and command.choice is not None:
            raise InputError(NO_CAPTURE)


def _memory_left() -> int | None:
    """Return what this process may take beside what it holds; None for as much as there is."""
    share_bytes = shares_from().engine_bytes
    return None if share_bytes is None else max(0, share_bytes - (held_bytes() or 0))


def _model_ready(command: LoadModel, loaded: LoadedModel, check: SelfCheck | None) -> ModelReady:
    return ModelReady(
        request=command,
        model_id=loaded.model_id,
        shape=loaded.shape,
        device=loaded.device,
        tokenizer_files=loaded.tokenizer_files,
        context_limit=loaded.context_limit,
        caches=cache_options(loaded.model),
        ceilings=saved_ceilings(*device_and_dtype(loaded)),
        decodes=decode_options(loaded.model.device),
        devices=device_options(),
        device_note=loaded.device_note,
        attentions=attention_options(loaded.model),
        check=check,
    )
