"""The messages between the app process and the engine process: frozen, picklable, no torch.

Commands go to the engine and replies come back; the unions ``Command`` and ``Reply`` list them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inference.records.attention import AttentionChoice, AttentionMap, KnownTokens
from inference.records.batches import BatchSweep
from inference.records.checks import SelfCheck
from inference.records.model import Device, DeviceOption, ModelShape, TokenizerFiles
from inference.records.options import (
    ONE_BATCH,
    AttentionKind,
    AttentionOption,
    BatchPlan,
    CacheKind,
    CacheOption,
    DecodeMode,
    DecodeOption,
)
from inference.records.rooflines import MeasuredCeilings, TokenSweep
from inference.records.run import Request, RunInfo
from inference.records.status import LoadStage, RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModel:
    """Load this model and drop the one held before.

    Attributes:
        is_plain: Use the library's own code only, no kernels of ours, for the model's own
            computation.
        attention: Which implementation computes attention; one that is named computes it in every
            step.
    """

    model: str
    dtype: str = "auto"
    device: str = "auto"
    is_plain: bool = False
    attention: AttentionKind = AttentionKind.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Run these requests as one batch on the model held.

    Attributes:
        is_paused: Wait for a step or a resume before the first forward pass.
        hold_s: Wait this long at most for ``Action.BEGIN``, or for whatever else steers the run,
            once the run is described and before its clock and its readings begin.
        steps_per_s: Upper bound on the pace; None for as fast as it goes.
        chunk_tokens: Most tokens of a prompt that one step feeds; None for the whole prompt.
        cache: How keys and values are stored.
        capture: Whose attention to capture from the first step on; None for none.
        split_every: Time linear operations and attention apart in one decode step of this many;
            None for never.
        is_prefill_split: And in the prefill.
        plan: How several requests share the device.
        decode: How decode steps are launched; where that is impossible, they are eager.
    """

    run_id: str
    requests: tuple[Request, ...]
    seed: int
    is_paused: bool = False
    hold_s: float = 0.0
    steps_per_s: float | None = None
    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC
    capture: AttentionChoice | None = None
    split_every: int | None = None
    is_prefill_split: bool = True
    plan: BatchPlan = ONE_BATCH
    decode: DecodeMode = DecodeMode.EAGER


class Action(StrEnum):
    """What a viewer may ask of a run; ``BEGIN`` ends the hold before its first step."""

    BEGIN = "begin"
    PAUSE = "pause"
    RESUME = "resume"
    STEP = "step"
    STOP = "stop"
    PACE = "pace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Steer the run between two steps; one that has ended ignores it."""

    run_id: str
    action: Action
    steps_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureAttention:
    """Capture this layer's attention from the next step on, and show the prompt's where it is kept.

    Attributes:
        choice: None to stop capturing.
        query: Show one query of the prompt exactly, whatever the size of the map.
    """

    run_id: str
    choice: AttentionChoice | None
    query: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recapture:
    """Capture a layer's attention of a run that is over, by feeding its tokens once.

    Every other command goes first: it leaves off for them, and says so.

    Attributes:
        number: Of this wish; its end names it.
        tokens: Of the request that ``choice.slot`` names.
    """

    number: int
    run_id: str
    choice: AttentionChoice
    tokens: KnownTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSteps:
    """Time linear operations and attention apart in some of the run's next decode steps.

    Attributes:
        every: In one step of this many; None for in none.
    """

    run_id: str
    every: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureCeilings:
    """Measure the device's two roofs for the dtype of the model held; sent while no run is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTokens:
    """Time steps of the model held for each count of tokens fed; sent while no run is on."""

    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBatches:
    """Time decode steps of the model held by batch and context; sent while no run is on."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckModel:
    """Check the model held anew, for as long as it takes, whenever the engine is idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopMeasuring:
    """End the measurement that is on; without one it asks for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """End the engine process."""


Measure = MeasureCeilings | SweepTokens | SweepBatches
Command = (
    LoadModel
    | Generate
    | Control
    | CaptureAttention
    | Recapture
    | SplitSteps
    | Measure
    | CheckModel
    | StopMeasuring
    | Shutdown
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The progress of loading a model, or of preparing a run."""

    stage: LoadStage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReady:
    """A model is loaded; ``request`` is the command that asked for it.

    Attributes:
        ceilings: The roofs kept for its device and dtype; None when none were measured yet.
        decodes: Every way to launch decode steps, with the reason where one is not available.
        devices: What a model can be loaded on, the preferred one first.
        device_note: What the model runs on, and why.
        attentions: Every implementation of attention, with the reason where one is not available.
        check: The self-check kept for it; None where it is not checked yet.
    """

    request: LoadModel
    model_id: str
    shape: ModelShape
    device: Device
    tokenizer_files: TokenizerFiles
    context_limit: int | None
    caches: tuple[CacheOption, ...] = ()
    ceilings: MeasuredCeilings | None = None
    decodes: tuple[DecodeOption, ...] = ()
    devices: tuple[DeviceOption, ...] = ()
    device_note: str = ""
    attentions: tuple[AttentionOption, ...] = ()
    check: SelfCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailed:
    """A model could not be loaded; ``sentence`` says why and what to do."""

    request: LoadModel
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The engine begins the run."""

    info: RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """One step is done."""

    run_id: str
    event: StepEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """What the chosen layer attended to in one step; follows the step's ``Stepped``.

    Attributes:
        query: The one query that ``CaptureAttention`` asked for; None for a map of the whole step.
    """

    run_id: str
    step_index: int
    attention: AttentionMap
    query: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRefused:
    """That attention cannot be captured; the choice before it stands."""

    run_id: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecaptureEnded:
    """Every map that ``Recapture`` asked for was sent as ``Attended``, or there will be no more.

    Attributes:
        sentence: Why it failed; empty when it did not.
        is_interrupted: It left off for another command.
    """

    number: int
    sentence: str = ""
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One telemetry sample was taken during the run."""

    run_id: str
    sample: TelemetrySample


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """The run was paused or resumed."""

    run_id: str
    state: RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run reached a final state; ``message`` says why when it did not simply finish."""

    run_id: str
    state: RunState
    message: str = ""
    unavailable: tuple[Unavailable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """The progress of a measurement.

    Attributes:
        batches: The sweep over batches so far; None for other measurements.
    """

    stage: LoadStage
    batches: BatchSweep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureEnded:
    """A measurement has ended; without a result ``sentence`` says why.

    Attributes:
        batches: The sweep over batches, as far as it came.
        is_kept: False when the result could not be written for later.
    """

    ceilings: MeasuredCeilings | None = None
    sweep: TokenSweep | None = None
    batches: BatchSweep | None = None
    sentence: str = ""
    is_kept: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The self-check of the model held, as far as it is.

    Attributes:
        is_kept: False when it is whole and could not be written for later.
    """

    check: SelfCheck
    is_kept: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailed:
    """The self-check came to no end; ``sentence`` says why."""

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDied:
    """The engine process ended without being asked to."""

    exit_code: int | None


Reply = (
    Loading
    | ModelReady
    | LoadFailed
    | RunStarted
    | Stepped
    | Attended
    | CaptureRefused
    | RecaptureEnded
    | Sampled
    | StateChanged
    | RunEnded
    | Measuring
    | MeasureEnded
    | Checked
    | CheckFailed
    | EngineDied
)
