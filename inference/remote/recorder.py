"""The growing request: takes what arrives and hands out RemoteRequest snapshots."""

from __future__ import annotations

from inference.records.arrivals import (
    Arrival,
    ArrivalKind,
    Channel,
    EngineTimes,
    Marks,
    RemoteAsk,
    RemoteRequest,
    Usage,
)
from inference.records.status import RunState
from inference.remote.chunks import Chunk
from inference.remote.connection import BodyPart, WireMarks
from inference.remote.json_values import HIGH_HALF, text_bytes

NS = 1e-9
NO_TEXT = ((Channel.ANSWER, ""),)
UNFINISHED = (
    "the stream ended before the engine said that the answer was finished; what came until then is "
    "kept"
)


class RequestRecorder:
    """One request while its answer comes; used on one event loop.

    Attributes:
        request_id: Its name in the run.
        ask: What is asked for.
        state: Where it stands.
        message: Why it failed or was stopped.
        status: The answer's HTTP status; None before there is one.
        is_over: The engine said that nothing follows.
        is_warm_up: It brings the engine up to its load.
    """

    def __init__(self, request_id: str, ask: RemoteAsk, *, zero_ns: int, planned_s: float) -> None:
        self.request_id = request_id
        self.ask = ask
        self.state = RunState.QUEUED
        self.message = ""
        self.status: int | None = None
        self.is_over = False
        self.is_warm_up = False
        self._zero_ns = zero_ns
        self._planned_s = planned_s
        self._sent_ns: int | None = None
        self._first_byte_ns: int | None = None
        self._ended_ns: int | None = None
        self._wire = WireMarks()
        self._fields: tuple[str, ...] = ()
        self._arrivals: list[Arrival] = []
        self._halves: dict[Channel, str] = {}
        self._usage: Usage | None = None
        self._times: EngineTimes | None = None
        self._finish = ""
        self._notes: list[str] = []

    @property
    def arrivals(self) -> int:
        """How many events have arrived."""
        return len(self._arrivals)

    def sent(self, at_ns: int, wire: WireMarks, fields: tuple[str, ...]) -> None:
        """Note that the request is handed to the connection, whose moments ``wire`` will hold."""
        self.state = RunState.RUNNING
        self._sent_ns = at_ns
        self._wire = wire
        self._fields = fields

    def note(self, sentence: str) -> None:
        """Keep a sentence on how it went."""
        self._notes.append(sentence)

    def came(self, part: BodyPart) -> None:
        """Note that bytes of the body came."""
        if self._first_byte_ns is None:
            self._first_byte_ns = part.read_ns
        self._ended_ns = part.read_ns

    def alive(self, part: BodyPart) -> None:
        """Note a comment that keeps the connection open."""
        self._arrivals.append(
            Arrival(at_s=self._seconds(part.read_ns), read=part.read, kind=ArrivalKind.ALIVE)
        )

    def take(self, chunk: Chunk, part: BodyPart) -> None:
        """Record what an event says."""
        self._usage = _later(self._usage, chunk.usage)
        self._times = chunk.times or self._times
        self._finish = chunk.finish or self._finish
        self.is_over = self.is_over or chunk.is_end
        if not chunk.is_end or chunk.finish or chunk.texts:
            self._arrivals += self._arrivals_of(chunk, part)

    def fail(self, message: str) -> None:
        """End it with the reason why it failed."""
        self.state = RunState.FAILED
        self.message = message

    def stop(self, message: str) -> None:
        """End it because somebody wanted that, unless it is over."""
        if not self.state.is_final:
            self.state = RunState.STOPPED
            self.message = message

    def end(self, problem: str = "") -> None:
        """End it with the end of the stream, which may have been a problem.

        An answer that the engine called finished is whole, whatever happened to the stream then.
        """
        if self.state.is_final:
            return
        if not (self._finish or self.is_over):
            self.fail(problem or UNFINISHED)
            return
        self.state = RunState.DONE
        if problem:
            self.note(f"after the answer: {problem}")

    def snapshot(self) -> RemoteRequest:
        """Return the request as it stands."""
        wire = self._wire
        return RemoteRequest(
            request_id=self.request_id,
            ask=self.ask,
            marks=Marks(
                planned_s=self._planned_s,
                sent_s=self._mark(self._sent_ns),
                connected_s=self._mark(wire.connected_ns),
                written_s=self._mark(wire.written_ns),
                headers_s=self._mark(wire.headers_ns),
                first_byte_s=self._mark(self._first_byte_ns),
                ended_s=self._mark(self._ended_ns),
            ),
            arrivals=tuple(self._arrivals),
            usage=self._usage,
            times=self._times,
            finish=self._finish,
            is_warm_up=self.is_warm_up,
            asked_fields=self._fields,
            state=self.state,
            message=self.message,
            notes=tuple(self._notes),
        )

    def _arrivals_of(self, chunk: Chunk, part: BodyPart) -> list[Arrival]:
        """Return an arrival for each channel that a chunk has text for; else one."""
        kind, at_s = _kind(chunk), self._seconds(part.read_ns)
        return [
            Arrival(
                at_s=at_s,
                read=part.read,
                kind=kind,
                raw=self._raw(channel, text) if text else b"",
                channel=channel,
                token_ids=() if index else chunk.token_ids,
                tokens=() if index else chunk.tokens,
                running_tokens=chunk.running_tokens,
                prompt_fed=chunk.prompt_fed,
                prompt_total=chunk.prompt_total,
            )
            for index, (channel, text) in enumerate(chunk.texts or NO_TEXT)
        ]

    def _raw(self, channel: Channel, text: str) -> bytes:
        """Return a text as bytes; half a character's escapes wait for the other half."""
        whole = self._halves.pop(channel, "") + text
        if HIGH_HALF.search(whole):
            self._halves[channel] = whole[-1]
            whole = whole[:-1]
        return text_bytes(whole)

    def _mark(self, at_ns: int | None) -> float | None:
        return None if at_ns is None else self._seconds(at_ns)

    def _seconds(self, at_ns: int) -> float:
        return (at_ns - self._zero_ns) * NS


def _kind(chunk: Chunk) -> ArrivalKind:
    if chunk.prompt_fed is not None or chunk.prompt_total is not None:
        return ArrivalKind.PROGRESS
    if chunk.texts or chunk.token_ids or chunk.tokens:
        return ArrivalKind.TEXT
    if chunk.finish:
        return ArrivalKind.FINISH
    return ArrivalKind.EMPTY if chunk.has_choice else ArrivalKind.COUNTS


def _later(known: Usage | None, said: Usage | None) -> Usage | None:
    """Return the newer counts, unless they are smaller: a count can only grow."""
    if known is None or said is None:
        return said or known
    return said if (said.output_tokens or 0) >= (known.output_tokens or 0) else known
