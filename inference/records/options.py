"""The choices a run can be made with, and what a loaded model refuses of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CacheKind(StrEnum):
    """How a cache stores keys and values."""

    DYNAMIC = "dynamic"  # grows with every token
    STATIC = "static"  # all its room is reserved at the start
    QUANTISED = "quantised"  # grows, in 8-bit floats


class DecodeMode(StrEnum):
    """How a decode step is launched on the device."""

    EAGER = "eager"  # operation by operation
    GRAPH = "graph"  # recorded once, replayed as one launch
    COMPILED = "compiled"  # by torch.compile, on CUDA recorded as well


class AttentionKind(StrEnum):
    """Which of the library's implementations computes attention."""

    AUTO = "auto"  # the library's choice, with our kernels where they fit
    SDPA = "sdpa"  # torch's fused function
    EAGER = "eager"  # one operation after another, all weights written out
    FLASH = "flash_attention_2"  # the flash-attn package


class Policy(StrEnum):
    """When a slot of a batch takes the next request."""

    STATIC = "static"  # when all rows of the batch are done
    CONTINUOUS = "continuous"  # as soon as its own row is done


class Padding(StrEnum):
    """On which side prompts of one batch are filled up to the longest of them."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How several requests share the device.

    Attributes:
        slots: Rows that may run together; None for one a request.
        padding: Where a static batch is filled up in its prefill; afterwards every row ends in the
            last column.
    """

    policy: Policy = Policy.STATIC
    slots: int | None = None
    padding: Padding = Padding.LEFT


ONE_BATCH = BatchPlan()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy and ignores the other two."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    @property
    def is_greedy(self) -> bool:
        """True when the highest logit is always taken."""
        return self.temperature == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOption:
    """A kind of cache, and why the model held cannot use it; an empty reason means it can."""

    kind: CacheKind
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOption:
    """A way to launch decode steps, and why the model held cannot use it; empty when it can."""

    mode: DecodeMode
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOption:
    """An implementation of attention, and why the model held cannot use it; empty when it can."""

    kind: AttentionKind
    reason: str = ""
