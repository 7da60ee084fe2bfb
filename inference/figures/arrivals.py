"""A remote request's arrivals to its figures. No torch, no clock.

An arrival is no token: several tokens may come in one, and a buffer on the way may join many. So
tokens are counted from the best that the engine offers, gaps are between the network reads that
brought tokens, and each figure says what it rests on. The engine's own durations stand beside ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median

from inference.figures.latency import percentile
from inference.records.arrivals import Arrival, ArrivalKind, Channel, RemoteRequest

NO_TOKEN = frozenset({ArrivalKind.PROGRESS, ArrivalKind.ALIVE})
NATURAL_END = frozenset({"stop", "eos", "eos_token", "end_turn"})
BURST_TOKENS = 4


class CountSource(StrEnum):
    """What the tokens of an arrival are counted from, best first."""

    IDS = "token ids"
    RUNNING = "the engine's running count"
    ENTRIES = "tokens named beside the text, at least"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """How many tokens came, and when.

    Attributes:
        per_arrival: Tokens since the arrival before, in the arrivals' order; None where a text came
            and nothing says of how many tokens.
        total: Output tokens; None where nothing says how many.
        is_exact: ``per_arrival`` is no lower bound and has no None.
        note: Where the engine's final count differs from what came, in a sentence; empty otherwise.
    """

    source: CountSource
    per_arrival: tuple[int | None, ...]
    total: int | None
    is_exact: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalFigures:
    """Latency as seen from here; None where it was not reached or cannot be known.

    Attributes:
        counts: The tokens that the figures count.
        ttft_s: From sent to the read that brought the first token of any channel.
        ttft_planned_s: The same from when it was to be sent.
        answer_s: From sent to the first text of the answer itself, after reasoning.
        gaps_s: Between the reads that brought tokens, in order.
        is_token_by_token: True when every one of those reads brought exactly one token, so that the
            gaps are inter-token latencies.
        tokens_per_read: Median over the reads that brought tokens; None where not known.
        tpot_s: (last - first read with tokens) / (all tokens - those of the first read).
        is_tpot_at_least: The tokens of the first read are not known exactly, so one was assumed.
        e2e_s: From sent to the last read that brought tokens.
        hidden_tokens: Counted by the engine in events without text: half characters, the end of the
            sequence, what a parser kept.
    """

    request_id: str
    counts: TokenCounts
    ttft_s: float | None
    ttft_planned_s: float | None
    answer_s: float | None
    gaps_s: tuple[float, ...]
    gap_p50_s: float | None
    gap_p95_s: float | None
    gap_max_s: float | None
    is_token_by_token: bool
    tokens_per_read: float | None
    tpot_s: float | None
    is_tpot_at_least: bool
    e2e_s: float | None
    hidden_tokens: int

    @property
    def is_in_bursts(self) -> bool:
        """True when reads bring so many tokens that the gaps say little of the engine."""
        return self.tokens_per_read is not None and self.tokens_per_read >= BURST_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftPart:
    """A part of TTFT.

    Attributes:
        is_ours: Measured here; otherwise by the engine's own clock, or what is left.
    """

    name: str
    duration_s: float
    is_ours: bool


@dataclass(frozen=True, slots=True)
class _TokenRead:
    """A network read that brought tokens; how many is None where nothing says so."""

    at_s: float
    tokens: int | None


def token_counts(request: RemoteRequest) -> TokenCounts:
    """Return how many tokens came in each arrival, from the best that the engine offers.

    Ids of all tokens, else growth of the engine's running count, which may only grow, else the
    tokens that it names beside the text: of a split character or a draft it may name fewer. The
    engine's final count is the total where it gives one; zeros beside a text count for nothing.
    """
    source = _source(request.arrivals)
    per_arrival = _per_arrival(request.arrivals, source)
    came = sum(count or 0 for count in per_arrival)
    is_exact = source in {CountSource.IDS, CountSource.RUNNING}
    stated = request.usage.output_tokens if request.usage is not None else None
    if not stated:
        known = came if is_exact or not any(one.raw for one in request.arrivals) else None
        return TokenCounts(
            source=source, per_arrival=per_arrival, total=known, is_exact=is_exact, note=""
        )
    differs = source is not CountSource.UNKNOWN and came != stated
    note = f"the engine counted {stated:,} tokens, and {came:,} came" if differs else ""
    return TokenCounts(
        source=source, per_arrival=per_arrival, total=stated, is_exact=is_exact, note=note
    )


def arrival_figures(request: RemoteRequest) -> ArrivalFigures:
    """Return the figures of one request, as far as it came.

    Source:
        TPOT: vLLM's serving benchmark divides by the tokens after the first; where a read brings
        several, the first read's tokens took none of the time that is divided.
    """
    counts = token_counts(request)
    reads = _token_reads(request, counts)
    sent_s = request.marks.sent_s
    first, last = (reads[0], reads[-1]) if reads else (None, None)
    gaps_s = tuple(after.at_s - before.at_s for before, after in pairwise(reads))
    ordered = sorted(gaps_s)
    known = [read.tokens for read in reads if read.tokens is not None]
    is_known = counts.is_exact and len(known) == len(reads) > 0
    return ArrivalFigures(
        request_id=request.request_id,
        counts=counts,
        ttft_s=_between(sent_s, first),
        ttft_planned_s=_between(request.marks.planned_s, first),
        answer_s=_between(sent_s, _first_answer(request.arrivals)),
        gaps_s=gaps_s,
        gap_p50_s=percentile(ordered, 0.50),
        gap_p95_s=percentile(ordered, 0.95),
        gap_max_s=ordered[-1] if ordered else None,
        is_token_by_token=is_known and set(known) == {1},
        tokens_per_read=median(known) if is_known else None,
        tpot_s=_tpot_s(counts, reads),
        is_tpot_at_least=not is_known,
        e2e_s=_between(sent_s, last),
        hidden_tokens=sum(
            count or 0
            for one, count in zip(request.arrivals, counts.per_arrival, strict=True)
            if not one.raw
        ),
    )


def ttft_parts(request: RemoteRequest) -> tuple[TtftPart, ...]:
    """Return TTFT cut as far as the engine says: connecting, then its own durations, then the rest.

    Durations of two clocks can be set side by side, though their moments cannot. Where the engine's
    add up to more than there is, nothing is left and nothing is made to fit.
    """
    ttft_s = arrival_figures(request).ttft_s
    marks, times = request.marks, request.times
    if ttft_s is None or marks.sent_s is None:
        return ()
    parts: list[TtftPart] = []
    if marks.connected_s is not None:
        parts.append(
            TtftPart(name="connect", duration_s=marks.connected_s - marks.sent_s, is_ours=True)
        )
    if times is not None:
        said = (("queue", times.queue_s), ("load", times.load_s), ("prefill", times.prefill_s))
        parts += [
            TtftPart(name=name, duration_s=value, is_ours=False) for name, value in said if value
        ]
    left_s = ttft_s - sum(part.duration_s for part in parts)
    name = "first decode, network and what the engine does not name"
    if len(parts) == 0 or all(part.is_ours for part in parts):
        name = "queue, prefill and first decode: the engine does not say"
    if left_s > 0:
        parts.append(TtftPart(name=name, duration_s=left_s, is_ours=False))
    return tuple(parts)


def answer_text(request: RemoteRequest, channel: Channel = Channel.ANSWER) -> str:
    """Return the text of a channel; bytes that are no UTF-8 show as replacement marks."""
    raw = b"".join(one.raw for one in request.arrivals if one.channel is channel)
    return raw.decode("utf-8", "replace")


def _source(arrivals: Sequence[Arrival]) -> CountSource:
    if any(one.token_ids for one in arrivals):
        return CountSource.IDS
    if any(one.running_tokens for one in arrivals if one.kind is ArrivalKind.TEXT):
        return CountSource.RUNNING
    if any(one.tokens for one in arrivals):
        return CountSource.ENTRIES
    return CountSource.UNKNOWN


def _per_arrival(arrivals: Sequence[Arrival], source: CountSource) -> tuple[int | None, ...]:
    counts: list[int | None] = []
    most = 0
    for one in arrivals:
        if one.kind in NO_TOKEN:
            counts.append(0)
        elif source is CountSource.IDS:
            counts.append(len(one.token_ids))
        elif source is CountSource.RUNNING:
            running = max(most, one.running_tokens or 0)
            counts.append(running - most)
            most = running
        elif source is CountSource.ENTRIES:
            counts.append(len(one.tokens))
        else:
            counts.append(None if one.raw else 0)
    return tuple(counts)


def _token_reads(request: RemoteRequest, counts: TokenCounts) -> list[_TokenRead]:
    """Return the reads that brought a text or a counted token, in order.

    Without a running count, an end of its own stands for the end-of-sequence token, which has no
    text and is in the engine's final count.
    """
    reads: dict[int, _TokenRead] = {}
    is_counted = counts.is_exact
    is_natural = request.finish in NATURAL_END
    for one, count in zip(request.arrivals, counts.per_arrival, strict=True):
        ends = one.kind is ArrivalKind.FINISH and is_natural and not is_counted and bool(reads)
        if not (one.raw or count or ends):
            continue
        former = reads.get(one.read)
        tokens = None if count is None or ends else count
        if former is not None:
            both = (former.tokens, tokens)
            tokens = None if both[0] is None or both[1] is None else both[0] + both[1]
        reads[one.read] = _TokenRead(one.at_s, tokens)
    return list(reads.values())


def _tpot_s(counts: TokenCounts, reads: Sequence[_TokenRead]) -> float | None:
    if counts.total is None or len(reads) < 2:  # noqa: PLR2004  two reads make a gap
        return None
    first_tokens = max(1, reads[0].tokens or 1)
    after_first = counts.total - first_tokens
    return (reads[-1].at_s - reads[0].at_s) / after_first if after_first > 0 else None


def _first_answer(arrivals: Sequence[Arrival]) -> Arrival | None:
    is_answer = (one for one in arrivals if one.raw and one.channel is Channel.ANSWER)
    return next(is_answer, None)


def _between(start_s: float | None, end: _TokenRead | Arrival | None) -> float | None:
    return None if start_s is None or end is None else end.at_s - start_s
