"""One run on a loaded model: what the engine process and the command line both carry out.

Its sink decides where the run goes: over the pipe to the app, or into a recording in this process.
What is prepared, described, sampled and caught is the same for both.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from transformers import PreTrainedModel

from inference.engine.clock import StepClock, clock_for, marks_for, sleep
from inference.engine.free_memory import check_memory
from inference.engine.graph_capture import CAPTURES
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.part_times import PartMeter
from inference.engine.row_backend import TorchRowBackend
from inference.engine.run_delay import why_unknown
from inference.models.devices import gpu_ids
from inference.models.loading import LoadedModel
from inference.models.placement import devices_of
from inference.process.messages import Generate
from inference.process.orders import RunOrder
from inference.process.telemetry import Telemetry
from inference.records.costs import Ceilings
from inference.records.errors import InputError, TokenByTokenError
from inference.records.options import DecodeMode
from inference.records.run import Request, RunInfo
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable

VERSIONED = ("torch", "transformers")
PREPARING = {
    DecodeMode.GRAPH: "recording the decode step",
    DecodeMode.COMPILED: "compiling the decode step, which takes minutes the first time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is to be run.

    Attributes:
        options: As asked for; where they cannot be met, ``Engine.prepare`` chooses others.
        ceilings: The device's roofs for the model's dtype; None when they were not measured.
        check_warning: What the model's self-check found to differ; empty when nothing.
    """

    run_id: str
    requests: tuple[Request, ...]
    seed: int
    options: GenerationOptions
    ceilings: Ceilings | None = None
    check_warning: str = ""


class RunSink(Protocol):
    """Where a run goes, in the order of these methods; samples come on a thread of their own."""

    def preparing(self, stage: LoadStage) -> None:
        """Take what is being prepared before the run, where that takes a while."""
        ...

    def started(self, info: RunInfo) -> None:
        """Take the run's description, before its first step; the run's clock starts after it."""
        ...

    def may_step(self) -> bool:
        """Wait until the next step may begin; False to end the run here."""
        ...

    def idle(self, seconds: float) -> bool:
        """Wait while no request is there; False to end the run here."""
        ...

    def stepped(self, event: StepEvent) -> None:
        """Take one step."""
        ...

    def sampled(self, sample: TelemetrySample) -> None:
        """Take one telemetry sample; called on the sampling thread."""
        ...

    def ended(self, state: RunState, message: str, unavailable: tuple[Unavailable, ...]) -> None:
        """Take the final state, its reason if it is not done, and the readings that are missing."""
        ...


def part_meter(model: PreTrainedModel) -> PartMeter | None:
    """Return what times the parts of a step; None where nothing does, and on several devices.

    Marks are in one device's stream, and layers on others leave it idle.
    """
    marks = marks_for(model.device) if len(devices_of(model)) == 1 else None
    return PartMeter(model, marks) if marks is not None else None


class Runner:
    """The engine over one loaded model.

    Attributes:
        loaded: The model.
        clock: What times its steps.
        backend: The model as the engine uses it.
        engine: Steer it between two steps only.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        device = loaded.model.device
        self.loaded = loaded
        self.clock: StepClock = clock_for(device)
        self.backend = TorchRowBackend(loaded.model)
        meter = part_meter(loaded.model)
        if meter is not None:
            self.backend.is_watched = lambda: meter.is_on
        limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
        self.engine = Engine(self.backend, self.clock, limits, meter)

    def run(self, plan: RunPlan, sink: RunSink) -> None:
        """Carry out one run; whatever ends it, the sink gets the end."""
        if plan.options.decode is not DecodeMode.EAGER:
            sink.preparing(LoadStage(stage=PREPARING[plan.options.decode]))
        refusal = self._refusal(plan)
        options, note = self.engine.prepare(() if refusal else plan.requests, plan.options)
        sink.started(self._info(plan, options, note))
        zero_s = self.clock.now_s()
        self.engine.idle = sink.idle
        gpus = gpu_ids(devices_of(self.loaded.model))
        telemetry = Telemetry(self.clock, sink.sampled, gpus=gpus)
        telemetry.start(zero_s)
        try:
            if refusal is not None:
                raise refusal
            steps = self.engine.generate(
                plan.requests, seed=plan.seed, zero_s=zero_s, options=options
            )
            state, message = _take(steps, sink, len(plan.requests))
        except KeyboardInterrupt:
            state, message = RunState.STOPPED, "interrupted"
        except TokenByTokenError as error:
            state, message = RunState.FAILED, str(error)
        finally:
            telemetry.stop()
            self.engine.idle = sleep  # the engine outlives the sink, which may hold the engine
        sink.ended(state, message, (*telemetry.unavailable(), *_no_delays()))

    def _refusal(self, plan: RunPlan) -> InputError | None:
        """Return why there is no room for the run; steps prepared for others give theirs up first.

        Asked before this run's own step is prepared, which takes the very room that is asked for.
        """
        refusal = self._missing_room(plan)
        if refusal is not None and self.backend.release_prepared():
            CAPTURES.release_memory()
            refusal = self._missing_room(plan)
        return refusal

    def _missing_room(self, plan: RunPlan) -> InputError | None:
        try:
            check_memory(self.loaded, plan.requests, plan.options.plan, cache=plan.options.cache)
        except InputError as refusal:
            return refusal
        return None

    def _info(self, plan: RunPlan, options: GenerationOptions, decode_note: str) -> RunInfo:
        """Return what a run is made with, dated now."""
        loaded = self.loaded
        return RunInfo(
            run_id=plan.run_id,
            model_id=loaded.model_id,
            shape=loaded.shape,
            device=loaded.device,
            attention=loaded.attention,
            clock=self.clock.name,
            seed=plan.seed,
            started_at=datetime.now(UTC),
            versions=library_versions(),
            cache=options.cache,
            chunk_tokens=options.chunk_tokens,
            plan=options.plan,
            ceilings=plan.ceilings,
            kernels=loaded.kernels,
            decode=options.decode,
            decode_note=decode_note,
            device_note=loaded.device_note,
            check_warning=plan.check_warning,
        )


def _no_delays() -> tuple[Unavailable, ...]:
    """Return why steps have no run delay; nothing where they have one."""
    reason = why_unknown()
    return (Unavailable(reading="run_delay_s", reason=reason),) if reason else ()


def library_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that a figure depends on, by library."""
    return tuple((name, importlib.metadata.version(name)) for name in VERSIONED)


def generation_options(source: Generate | RunOrder) -> GenerationOptions:
    """Return the engine's options of a command or an order."""
    return GenerationOptions(
        chunk_tokens=source.chunk_tokens,
        cache=source.cache,
        split_every=source.split_every,
        is_prefill_split=source.is_prefill_split,
        plan=source.plan,
        decode=source.decode,
    )


def _take(steps: Iterator[StepEvent], sink: RunSink, requests: int) -> tuple[RunState, str]:
    """Take one step after another while the sink allows it; return the end and its reason."""
    unfinished = requests
    while unfinished:
        event = next(steps, None) if sink.may_step() else None
        if event is None:
            return RunState.STOPPED, "stopped by the user"
        sink.stepped(event)
        unfinished -= sum(row.finish is not None for row in event.rows)
    return RunState.DONE, ""
