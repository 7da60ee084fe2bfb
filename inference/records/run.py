"""A whole run: what it was made with, what was asked, what happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from inference.records.attention import PackedAttention
from inference.records.costs import Ceilings
from inference.records.model import Device, ModelShape, TokenPiece
from inference.records.options import ONE_BATCH, BatchPlan, CacheKind, DecodeMode, Sampling
from inference.records.status import RunState
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a run was made with, kept beside its figures wherever they go.

    Attributes:
        attention: The attention implementation the model resolved to.
        clock: How step times were timed: ``host`` or ``cuda_events``.
        started_at: UTC.
        versions: Pairs of package name and version.
        cache: How keys and values were stored.
        chunk_tokens: Tokens of the prompt fed in one step at most; None when all were at once.
        plan: How several requests shared the device.
        ceilings: The device's two roofs for this dtype, measured there; None when they were not.
        decode: How decode steps were launched; those that were observed were eager.
        decode_note: Why another mode was used than the one asked for; empty when none was.
        device_note: What was chosen to run on and why, in a sentence; empty when not known.
        kernels: What small steps were computed with, and why not with kernels of our own where they
            were not; empty when not known.
        check_warning: What the self-check of the model found to differ on this machine; empty where
            nothing did, or no check was done.
    """

    run_id: str
    model_id: str
    shape: ModelShape
    device: Device
    attention: str
    clock: str
    seed: int
    started_at: datetime
    versions: tuple[tuple[str, str], ...]
    cache: CacheKind = CacheKind.DYNAMIC
    chunk_tokens: int | None = None
    plan: BatchPlan = ONE_BATCH
    ceilings: Ceilings | None = None
    decode: DecodeMode = DecodeMode.EAGER
    decode_note: str = ""
    device_note: str = ""
    kernels: str = ""
    check_warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one user asked for: ``prompt_ids`` are exactly what the model is fed.

    Attributes:
        arrival_s: When it came in, on the run's own time: step times and idle waits from its
            beginning.
        is_raw: The prompt was fed as it stands and not through the model's chat template; None
            where a file does not say.
        text_note: Control tokens among what was typed, and whether the tokens give the text back,
            in sentences; empty where there is nothing to say.
    """

    request_id: str
    prompt_text: str
    prompt_ids: tuple[int, ...]
    max_new_tokens: int
    sampling: Sampling
    arrival_s: float = 0.0
    is_raw: bool | None = None
    text_note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a request produced."""

    request_id: str
    token_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrace:
    """A run: everything a page, a metric or an export may ask of it.

    Attributes:
        outputs: One per request, in the requests' order.
        pieces: The bytes of every token id that occurs in requests, rows and candidates.
        unavailable: Telemetry readings that this machine did not give.
        state: Where the run stood when this was taken.
        message: Why it failed or was stopped, in a sentence; empty otherwise.
        attention: What was captured of its attention, packed, the choice shown first at the front;
            empty while the run goes.
    """

    info: RunInfo
    requests: tuple[Request, ...]
    events: tuple[StepEvent, ...]
    telemetry: tuple[TelemetrySample, ...]
    outputs: tuple[Output, ...]
    pieces: tuple[TokenPiece, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    state: RunState = RunState.DONE
    message: str = ""
    attention: tuple[PackedAttention, ...] = ()
