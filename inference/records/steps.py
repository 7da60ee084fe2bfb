"""What one forward pass did: its rows, its cache, its times."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from inference.records.options import DecodeMode


class Phase(StrEnum):
    """The two stages of generation."""

    PREFILL = "prefill"
    DECODE = "decode"


class Finish(StrEnum):
    """Why a row produced its last token."""

    EOS = "eos"
    LENGTH = "length"
    CONTEXT = "context"


class Part(StrEnum):
    """Which operations of a step something stands for."""

    STEP = "step"
    LINEAR = "linear"
    ATTENTION = "attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the likeliest next tokens, with its log-probability (nats) before temperature.

    Attributes:
        sampled_logprob: The same after temperature, top-k and top-p; None where they rule it out,
            and in greedy runs.
    """

    token_id: int
    logprob: float
    sampled_logprob: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStep:
    """What one step did for one row of the batch.

    Attributes:
        query_tokens: Tokens of this row fed in this step (T).
        context_tokens: Tokens of this row in the cache after it, those fed included (L).
        token_id: The token selected, not stored yet; None when a prefill chunk selects nothing.
        logprob: Its log-probability (nats) in the model's own distribution, before temperature.
        finish: Set on the row's last token.
        candidates: The likeliest tokens at this position, best first.
        entropy_nats: Of the model's own distribution at this position, before temperature.
    """

    request_id: str
    slot: int
    query_tokens: int
    context_tokens: int
    token_id: int | None
    logprob: float | None
    finish: Finish | None
    candidates: tuple[Candidate, ...] = ()
    entropy_nats: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not 0 < self.query_tokens <= self.context_tokens:
            msg = f"a step feeds 1 to {self.context_tokens} tokens, not {self.query_tokens}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What the cache holds after a step, read off its own tensors.

    Attributes:
        tokens_per_layer: K/V rows each layer holds for the longest row; 0 where it keeps none.
        used_bytes: Bytes of the K/V of real tokens, all rows.
        allocated_bytes: Bytes of all K/V tensors, padding and reserve included.
        bytes_per_layer: Allocated K/V bytes of each layer.
        used_bytes_per_layer: Used K/V bytes of each layer; empty where all layers are alike, since
            a run keeps one of these a step.
        state_bytes: Bytes of recurrent and convolution states, which no token adds to; in none of
            the figures above.
        state_bytes_per_layer: The same, layer by layer.
    """

    tokens_per_layer: tuple[int, ...]
    used_bytes: int
    allocated_bytes: int
    bytes_per_layer: tuple[int, ...] = ()
    state_bytes: int = 0
    state_bytes_per_layer: tuple[int, ...] = ()
    used_bytes_per_layer: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not 0 <= self.used_bytes <= self.allocated_bytes:
            msg = f"{self.used_bytes} bytes used of {self.allocated_bytes} allocated"
            raise ValueError(msg)

    @property
    def stored_bytes_per_layer(self) -> tuple[int, ...]:
        """Used bytes of each layer; empty where they are not known, as in older files."""
        if self.used_bytes_per_layer or not self.bytes_per_layer:
            return self.used_bytes_per_layer
        held = set(zip(self.tokens_per_layer, self.bytes_per_layer, strict=False))
        layers = len(self.bytes_per_layer)
        return (self.used_bytes // layers,) * layers if len(held) == 1 else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """How long the operations of one part of a step took, measured inside its step time."""

    part: Part
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """One forward pass and the sampling after it.

    Attributes:
        index: 0 for the first step of the run.
        started_s: Host monotonic time, on the run's zero.
        duration_s: The step time: forward and sampling, ended when the device was done.
        observed: True when something was captured that made the step slower.
        cold: True when first-call costs may be inside: the first prefill and decode step after a
            model was loaded, and on a GPU the first eager decode step of each number of rows.
        capture_s: Host time spent on capturing the step's attention, after its step time and in no
            other; None when nothing was captured.
        parts: Time in linear operations and in attention, in the steps where they were timed.
        waited_s: Idle wait before the step, while no request was there to be served.
        host_s: Host time from the start of the step until all its work was launched on the device;
            None where an operation has finished when its call returns, as on a CPU.
        decode: How this decode step was launched; None in prefill, and where it is not known.
        run_delay_s: How long a thread that computed stood ready in the step and did not run, since
            something else had the processors: the largest such time of its threads, so at least
            that much was lost. On a device that runs on by itself, until all work was launched.
            None where the system does not count it.
    """

    index: int
    phase: Phase
    rows: tuple[RowStep, ...]
    cache: CacheState
    started_s: float
    duration_s: float
    observed: bool
    cold: bool
    capture_s: float | None = None
    parts: tuple[PartTime, ...] = ()
    waited_s: float = 0.0
    host_s: float | None = None
    decode: DecodeMode | None = None
    run_delay_s: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not (isfinite(self.duration_s) and self.duration_s >= 0):
            msg = f"a step time of {self.duration_s} s"
            raise ValueError(msg)
        lost_s = self.run_delay_s
        if lost_s is not None and not 0 <= lost_s <= self.duration_s:
            msg = f"{lost_s} s without a processor in a step of {self.duration_s} s"
            raise ValueError(msg)

    @property
    def query_tokens(self) -> int:
        """Tokens fed in this step, over all rows (T)."""
        return sum(row.query_tokens for row in self.rows)

    @property
    def context_tokens(self) -> int:
        """Longest context of the step's rows (L)."""
        return max(row.context_tokens for row in self.rows)
