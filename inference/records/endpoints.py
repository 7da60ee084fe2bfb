"""An engine at an address: which one it is, what it serves, and what it tells of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EngineKind(StrEnum):
    """The serving engines that are told apart."""

    VLLM = "vLLM"
    SGLANG = "SGLang"
    LLAMA_CPP = "llama.cpp"
    OLLAMA = "Ollama"
    TRANSFORMERS = "transformers serve"
    OTHER = "OpenAI-compatible"


class Extra(StrEnum):
    """What an engine may tell beside the text of a stream."""

    USAGE = "final token counts"
    COUNTS = "token count in each chunk"
    TOKEN_IDS = "token ids"  # noqa: S105  no password
    PROBABILITIES = "probabilities"
    PROGRESS = "prompt progress"
    OWN_TIMES = "the engine's own times"
    METRICS = "metrics page"


class Answer(StrEnum):
    """What is known of one extra."""

    CAME = "yes"
    DOCUMENTED = "documented"
    NOT_SENT = "did not come"
    REFUSED = "refused"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One extra: whether this server gives it, and how that is known or what it needs."""

    extra: Extra
    answer: Answer
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model on the server's list.

    Attributes:
        context_tokens: The longest context that the server states; None where it states none.
    """

    model_id: str
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointInfo:
    """What a server said of itself.

    Attributes:
        address: Scheme, host, port and path prefix; never a key.
        version: The engine's own version; empty where it states none.
        notes: What a user should know of how this was found, in sentences.
    """

    address: str
    engine: EngineKind
    version: str
    models: tuple[ServedModel, ...]
    offers: tuple[Offer, ...]
    notes: tuple[str, ...] = ()

    def offer(self, extra: Extra) -> Offer:
        """Return what is known of an extra."""
        return next(one for one in self.offers if one.extra is extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGauges:
    """What an engine's metrics page said at one moment, over all its data-parallel engines.

    None where this version does not say. Counters are since the engine's start.

    Attributes:
        running: Requests that it computes for.
        waiting: Requests in its queue.
        kv_used_ratio: Share of its room for K/V that is in use; the mean over the engines.
        prefix_asked_tokens: Tokens of prompts that were looked up in its cache of prefixes.
        prefix_hit_tokens: Of those, how many it had.
        preemptions: How often it took a request's room away.
        unreadable: Names of metrics whose lines could not be read.
    """

    running: int | None = None
    waiting: int | None = None
    kv_used_ratio: float | None = None
    prefix_asked_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    preemptions: int | None = None
    unreadable: tuple[str, ...] = ()
