"""The settings of a run and their defaults, from which every order is built. No Streamlit.

Widgets show the fields and write a replaced copy back (``session``); nothing else holds a default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from inference.models.catalog import DEFAULT_NAMES
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.attention import AttentionChoice
from inference.records.options import (
    AttentionKind,
    CacheKind,
    DecodeMode,
    Padding,
    Policy,
    Sampling,
)
from visuals.live.hub import UNWATCHED_SPLIT, WATCHED_SPLIT
from visuals.pages.examples import first_prompt

AUTO = "auto"
DEFAULT_MODEL = "default"
MARK = "---"


class Decoding(StrEnum):
    """How the next token is chosen, as the page says it."""

    GREEDY = "greedy"
    SAMPLING = "sampling"


class Split(StrEnum):
    """In which steps linear operations and attention are timed apart, as the page says it."""

    AUTOMATIC = "in one step in 16; one in 8 while the roofline shows them"
    EVERY = "in every step"
    NEVER = "in no step"


class Pace(StrEnum):
    """At most how many steps per second a run makes, as the page says it."""

    FREE = "Pace: as fast as it goes"
    TEN = "Pace: 10 steps/s"
    FIVE = "Pace: 5 steps/s"
    TWO = "Pace: 2 steps/s"
    ONE = "Pace: 1 step/s"
    HALF = "Pace: 1 step in 2 s"

    @property
    def steps_per_s(self) -> float | None:
        """The bound; None for none."""
        return STEPS_PER_S[self]


STEPS_PER_S: dict[Pace, float | None] = {
    Pace.FREE: None,
    Pace.TEN: 10.0,
    Pace.FIVE: 5.0,
    Pace.TWO: 2.0,
    Pace.ONE: 1.0,
    Pace.HALF: 0.5,
}


def pace_of(steps_per_s: float | None) -> Pace | None:
    """Return the pace with this bound; None where the page offers none."""
    return next((pace for pace in Pace if pace.steps_per_s == steps_per_s), None)


class BatchSource(StrEnum):
    """Which prompts run together, as the page says it."""

    ONE = "one prompt"
    SAME = "the same prompt"
    EXAMPLES = "the examples"
    TYPED = f"typed, split at {MARK}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run is made with, as the page offers it.

    Attributes:
        has_template: The prompt goes through the model's chat template.
        device: A device's name, or the engine's choice.
        chunk_tokens: Tokens of the prompt fed in one step; 0 for all at once.
        is_captured: Attention weights are captured in eager steps.
        batch_slots: Rows that may run together; 0 for all.
        batch_gap_s: Seconds between arrivals, unless ``batch_arrivals`` says when each comes in.
        batch_chunk_tokens: As ``chunk_tokens``, for a batch; 0 for what that says.
    """

    prompt: str = field(default_factory=first_prompt)
    max_new_tokens: int = 64
    decoding: Decoding = Decoding.GREEDY
    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    has_template: bool = True
    model: str = DEFAULT_MODEL
    dtype: str = AUTO
    device: str = AUTO
    attention: AttentionKind = AttentionKind.AUTO
    decode: DecodeMode = DecodeMode.EAGER
    split: Split = Split.AUTOMATIC
    chunk_tokens: int = 0
    cache: CacheKind = CacheKind.DYNAMIC
    is_captured: bool = True
    pace: Pace = Pace.FREE
    batch_source: BatchSource = BatchSource.ONE
    batch_count: int = 4
    batch_policy: Policy = Policy.STATIC
    batch_slots: int = 0
    batch_gap_s: float = 0.0
    batch_arrivals: str = ""
    batch_chunk_tokens: int = 0
    batch_padding: Padding = Padding.LEFT

    @property
    def sampling(self) -> Sampling:
        """How the next token is chosen; what leaves every token in is left out."""
        if self.decoding is Decoding.GREEDY:
            return Sampling(temperature=0.0)
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k or None,
            top_p=self.top_p if self.top_p < 1 else None,
        )

    @property
    def _model(self) -> str:
        """The model's name, one for the default model, so that it is not loaded twice."""
        model = self.model.strip() or DEFAULT_MODEL
        return DEFAULT_MODEL if model in DEFAULT_NAMES else model

    @property
    def load(self) -> LoadModel:
        """The model, and how it is loaded."""
        return LoadModel(
            model=self._model,
            dtype=self.dtype,
            device=self.device,
            attention=self.attention,
        )

    def split_every(self, *, shows_parts: bool) -> int | None:
        """Return how many steps apart one is timed in parts; None for never.

        Args:
            shows_parts: The roofline shows linear operations or attention at the moment.
        """
        if self.split is Split.AUTOMATIC and shows_parts:
            return WATCHED_SPLIT
        if self.split is Split.AUTOMATIC:
            # A step that is timed in parts is eager, which takes much longer than a prepared one.
            return UNWATCHED_SPLIT if self.decode is DecodeMode.EAGER else None
        return 1 if self.split is Split.EVERY else None

    def order(
        self,
        *,
        is_paused: bool = False,
        shows_parts: bool = False,
        capture: AttentionChoice | None = None,
    ) -> RunOrder:
        """Return the order of one run of the prompt.

        Args:
            is_paused: Wait for a step or a resume before the first forward pass.
            shows_parts: As for ``split_every``.
            capture: The layer and head chosen in a panel; None where nobody chose.
        """
        return RunOrder(
            prompts=(self.prompt,),
            max_new_tokens=self.max_new_tokens,
            sampling=self.sampling,
            seed=self.seed,
            is_raw=not self.has_template,
            load=self.load,
            is_paused=is_paused,
            steps_per_s=self.pace.steps_per_s,
            chunk_tokens=self.chunk_tokens or None,
            cache=self.cache,
            split_every=self.split_every(shows_parts=shows_parts),
            is_prefill_split=shows_parts or self.split is Split.EVERY,
            decode=self.decode,
            is_captured=self.is_captured and self.decode is DecodeMode.EAGER,
            capture=capture,
        )
