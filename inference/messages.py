"""What the app process and the engine process say to each other: frozen, picklable, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inference.records import (
    AttentionChoice,
    AttentionMap,
    CacheKind,
    CacheOption,
    Device,
    LoadStage,
    ModelShape,
    Request,
    RunInfo,
    RunState,
    StepEvent,
    TelemetrySample,
    TokenizerFiles,
    Unavailable,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModel:
    """Load this model and drop the one held before."""

    model: str
    dtype: str = "auto"
    device: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Run these requests as one batch on the model held.

    Attributes:
        is_paused: Wait for a step or a resume before the first forward pass.
        steps_per_s: Upper bound on the pace; None for as fast as it goes.
        chunk_tokens: Feed the prompt in chunks of so many tokens; None for all at once.
        cache: How keys and values are stored.
        look: What to look at from the first step on; None for nothing.
    """

    run_id: str
    requests: tuple[Request, ...]
    seed: int
    is_paused: bool = False
    steps_per_s: float | None = None
    chunk_tokens: int | None = None
    cache: CacheKind = CacheKind.DYNAMIC
    look: AttentionChoice | None = None


class Action(StrEnum):
    """What a viewer may ask of a run."""

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
class LookAt:
    """Look at this layer from the run's next step on; of the prompt, show what is still known.

    Attributes:
        choice: None to stop looking.
        query: Show one query of the prompt exactly, whatever the size of the picture.
    """

    run_id: str
    choice: AttentionChoice | None
    query: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """End the engine process."""


Command = LoadModel | Generate | Control | LookAt | Shutdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How far the loading of a model is."""

    stage: LoadStage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReady:
    """A model is loaded; ``request`` is the command that asked for it."""

    request: LoadModel
    model_id: str
    shape: ModelShape
    device: Device
    tokenizer_files: TokenizerFiles
    context_limit: int | None
    caches: tuple[CacheOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailed:
    """A model could not be loaded; ``sentence`` says why and what to do."""

    request: LoadModel
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The engine took the run up."""

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
        query: The one query that ``LookAt`` asked for; None for a map of the whole step.
    """

    run_id: str
    step_index: int
    attention: AttentionMap
    query: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRefused:
    """There is no such layer or head; the choice before it stands."""

    run_id: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One telemetry sample was taken while the run went."""

    run_id: str
    sample: TelemetrySample


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """The run was paused or goes on."""

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
    | LookRefused
    | Sampled
    | StateChanged
    | RunEnded
    | EngineDied
)
