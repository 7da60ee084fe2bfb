"""A request to an engine at an address, as seen from here: what arrived, and when.

An arrival is no step: several tokens may come in one, and a network read may hold several arrivals.
All times are host monotonic time on the run's zero, but those of :class:`EngineTimes`, which are
the engine's own durations, kept beside ours and never mixed with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite

from inference.records.endpoints import EndpointInfo, EngineGauges
from inference.records.options import Sampling
from inference.records.prompts import ChatMessage
from inference.records.status import RunState


class RunSource(StrEnum):
    """Where the tokens of a run were made."""

    THIS_MACHINE = "this machine"
    ENDPOINT = "endpoint"


class ArrivalKind(StrEnum):
    """What an event of the stream was for."""

    TEXT = "text"
    EMPTY = "empty"  # the answer began, or a text is held back
    PROGRESS = "progress"  # of the prompt
    FINISH = "finish"
    COUNTS = "counts"  # token counts or times alone
    ALIVE = "alive"  # a comment that keeps the connection open


class Channel(StrEnum):
    """Which part of an answer a text belongs to."""

    ANSWER = "answer"
    REASONING = "reasoning"
    TOOL = "tool call"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidCandidate:
    """A token that the engine might have selected, with its log-probability in nats."""

    raw: bytes
    logprob: float
    token_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidToken:
    """A token as the engine names it beside a text, which may be fewer than it generated.

    Attributes:
        raw: The token's bytes; its text as UTF-8 where the engine gives no bytes.
        logprob: In nats; None where it was not given, or is an exact 0 beside speculation.
    """

    raw: bytes
    token_id: int | None = None
    logprob: float | None = None
    candidates: tuple[SaidCandidate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One event of a stream.

    Attributes:
        at_s: When the network read that brought its end returned; events of one read share it.
        read: Which read that was, counted on the connection.
        raw: The text as the engine sent it, in UTF-8.
        token_ids: Ids of all tokens in it, where the engine gives them.
        tokens: The tokens that it names beside the text.
        running_tokens: The engine's count of output tokens up to here; None where it gives none.
        prompt_fed: Tokens of the prompt that it has fed, in a progress event.
        prompt_total: Of how many.
    """

    at_s: float
    read: int
    kind: ArrivalKind
    raw: bytes = b""
    channel: Channel = Channel.ANSWER
    token_ids: tuple[int, ...] = ()
    tokens: tuple[SaidToken, ...] = ()
    running_tokens: int | None = None
    prompt_fed: int | None = None
    prompt_total: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a chart would lie."""
        if not (isfinite(self.at_s) and self.at_s >= 0):
            msg = f"an arrival at {self.at_s} s"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The engine's final counts; None where it gives none.

    Attributes:
        cached_tokens: Tokens of the prompt whose keys and values it had already.
    """

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTimes:
    """Durations by the engine's own clock, and the counts they are for; None where not said.

    Attributes:
        queue_s: Until it was scheduled.
        load_s: Loading the model inside the request.
        prefill_s: Feeding the prompt; of vLLM from scheduled to the first token.
        decode_s: From the first token on.
        total_s: The whole request.
        prompt_tokens: Tokens of the prompt that were fed, without those cached.
        decode_tokens: Output tokens that ``decode_s`` is for, the first one included.
        drafted_tokens: Tokens that speculation proposed.
        accepted_tokens: Of those, how many were taken.
    """

    queue_s: float | None = None
    load_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    total_s: float | None = None
    prompt_tokens: int | None = None
    decode_tokens: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Moments of a request; None where one was not reached.

    Attributes:
        planned_s: When it was to be sent.
        sent_s: When it was handed to the connection, connecting included.
        connected_s: When a new connection stood; None where one was used again.
        written_s: When all of it was written.
        headers_s: When the answer's headers had come.
        first_byte_s: When the first read of the answer's body returned.
        ended_s: When the stream was over for us.
    """

    planned_s: float
    sent_s: float | None = None
    connected_s: float | None = None
    written_s: float | None = None
    headers_s: float | None = None
    first_byte_s: float | None = None
    ended_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAsk:
    """What an engine is asked for.

    Attributes:
        prompt_text: The prompt; of a conversation, its turns in plain text.
        turns: Pairs of role and content; empty for a plain prompt.
        is_raw: The prompt is continued as it stands, without the model's chat template.
    """

    model_id: str
    prompt_text: str
    max_new_tokens: int
    sampling: Sampling
    seed: int
    turns: tuple[ChatMessage, ...] = ()
    is_raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRequest:
    """One request and all that arrived.

    Attributes:
        asked_fields: Names of the extra fields that were sent.
        finish: The engine's own word for why it ended; empty where it gave none.
        is_warm_up: It brought the engine up to its load and is in no figure of that.
        message: Why it failed or was stopped, in a sentence; empty otherwise.
        notes: What a user should know of how it went, in sentences.
    """

    request_id: str
    ask: RemoteAsk
    marks: Marks
    arrivals: tuple[Arrival, ...] = ()
    usage: Usage | None = None
    times: EngineTimes | None = None
    finish: str = ""
    is_warm_up: bool = False
    asked_fields: tuple[str, ...] = ()
    state: RunState = RunState.DONE
    message: str = ""
    notes: tuple[str, ...] = ()


class Spacing(StrEnum):
    """How requests follow one another."""

    CLOSED = "closed"  # the next is sent when one has ended
    CONSTANT = "constant"  # at equal distances, whatever the engine does
    POISSON = "poisson"  # at random ones, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """How many requests were sent, and when.

    Attributes:
        concurrency: Requests under way at a time, in a closed loop; None in an open one.
        rate_per_s: Requests a second on average, in an open loop; None in a closed one.
        requests: Measured ones.
        warm_up: Those before them, in the same loop.
        seed: Of the random distances.
        is_cold: Each prompt begins with words of its own, so that no prefix is known.
    """

    spacing: Spacing
    requests: int
    concurrency: int | None = None
    rate_per_s: float | None = None
    warm_up: int = 0
    seed: int = 0
    is_cold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRun:
    """Requests that went to one address.

    Attributes:
        load: How they were spaced; None where one followed another for its own sake.
        gauges_before: What the engine's metrics page said before a load; None where none was read.
        gauges_after: Likewise afterwards.
        lateness_s: How late this program's event loop came to what it had to do, the 99th of a
            hundred times; None where nobody looked.
        started_at: UTC, at the run's zero.
        versions: Pairs of package name and version, of this side.
    """

    run_id: str
    endpoint: EndpointInfo
    started_at: datetime
    versions: tuple[tuple[str, str], ...]
    requests: tuple[RemoteRequest, ...]
    load: LoadPlan | None = None
    lateness_s: float | None = None
    gauges_before: EngineGauges | None = None
    gauges_after: EngineGauges | None = None
    source: RunSource = RunSource.ENDPOINT
