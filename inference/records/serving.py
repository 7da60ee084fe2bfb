"""What an engine elsewhere says of itself from second to second, as its metrics page has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Latency(StrEnum):
    """The latencies that engines keep in buckets, by their own clocks."""

    TTFT = "time to first token"
    GAP = "between outputs"
    TPOT = "time per output token"
    E2E = "whole request"
    QUEUE = "in the queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """How many requests were no slower than each bound, since the engine's start.

    Attributes:
        latency: Of what.
        at_most: Pairs of a bound in seconds, infinity last, and the count up to it, rising.
    """

    latency: Latency
    at_most: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """One data-parallel engine, or all of them, at one moment; None where it does not say.

    Counters are since the engine's start.

    Attributes:
        engine: Its own label; empty for all of them.
        running: Requests that it computes for.
        waiting: Requests in its queue.
        kv_used_ratio: Share of its room for K/V in use; of all, the mean.
        prefix_asked_tokens: Tokens looked up in its cache of prefixes.
        prefix_hit_tokens: Of those, how many it had.
        preemptions: How often it took a request's room away.
        prompt_tokens: Tokens of prompts, as it counts them.
        output_tokens: Tokens that it generated.
        drafted_tokens: Tokens that speculation proposed.
        accepted_tokens: Of those, how many were taken.
        latencies: Those that it keeps.
    """

    engine: str = ""
    running: int | None = None
    waiting: int | None = None
    kv_used_ratio: float | None = None
    prefix_asked_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    preemptions: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    latencies: tuple[Buckets, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """What a metrics page said at one moment.

    Attributes:
        at: UTC, when its answer was there.
        whole: All engines together; None where the page could not be read.
        engines: Each of them, where there are several.
        unreadable: Names of metrics whose lines could not be read.
    """

    at: datetime
    whole: EngineRow | None
    engines: tuple[EngineRow, ...] = ()
    unreadable: tuple[str, ...] = ()
