"""One request to an engine, from the first byte sent to the end of the stream.

Whatever goes wrong ends the request with a sentence in its recorder; nothing waits for ever, and
cancelling the task closes the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from time import perf_counter_ns

import httpcore2

from inference.remote.chunks import Chunk
from inference.remote.complaints import (
    COMPRESSED,
    GOOD,
    MOST_QUOTED_BYTES,
    content_problem,
    quoted,
    status_problem,
    wire_problem,
)
from inference.remote.connection import BodyPart, Reply, Wire, WireMarks
from inference.remote.json_values import NotJsonError
from inference.remote.messages import SILENCE_S, Message
from inference.remote.ollama_lines import read_line
from inference.remote.openai_events import read_event
from inference.remote.recorder import RequestRecorder
from inference.remote.stream_lines import (
    EventReader,
    EventTooLongError,
    JsonLines,
    ServerSentEvents,
    StreamEvent,
)

DRAIN_S = 0.25  # for the end of the body after the answer's end, so that the connection stays good
MOST_ARRIVALS = 1_000_000
MOST_BYTES = 512 * 2**20
WIRE_ERRORS = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
    OSError,
)
STREAMS = {"text/event-stream": ServerSentEvents, "application/x-ndjson": JsonLines}
UNNAMED = ("", "text/plain", "application/octet-stream")
STOPPED = "stopped from here; the stream was closed"
ReadContent = Callable[[bytes], Chunk]


async def ask(
    wire: Wire, message: Message, recorder: RequestRecorder, *, silence_s: float = SILENCE_S
) -> None:
    """Send a request and record what arrives until the stream is over.

    A connection that was used before may have been closed by the server while it was idle: then the
    request is sent once more, before any byte of an answer came.

    Raises:
        asyncio.CancelledError: Somebody stopped it; the recorder says so and the stream is closed.
    """
    try:
        is_done = await _try(wire, message, recorder, silence_s, may_repeat=True)
        if not is_done:
            await _try(wire, message, recorder, silence_s, may_repeat=False)
    except asyncio.CancelledError:
        recorder.stop(STOPPED)
        raise


def go_on() -> None:
    """Let a task that was cancelled, and has closed its streams, wait for something again."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _try(
    wire: Wire,
    message: Message,
    recorder: RequestRecorder,
    silence_s: float,
    *,
    may_repeat: bool,
) -> bool:
    """Return whether the request came to an end; False where it is to be sent again."""
    marks = WireMarks()
    recorder.sent(perf_counter_ns(), marks, message.fields)
    try:
        async with wire.exchange(
            message.path, message.body, silence_s=silence_s, marks=marks
        ) as reply:
            await _read_reply(reply, message, recorder, wire)
    except WIRE_ERRORS as error:
        is_old = marks.connecting_ns is None and marks.headers_ns is None
        if may_repeat and is_old and not isinstance(error, httpcore2.TimeoutException):
            recorder.note("the server had closed the idle connection; sent again on a new one")
            return False
        recorder.end(wire_problem(error, wire.endpoint, silence_s))
    return True


async def _read_reply(
    reply: Reply, message: Message, recorder: RequestRecorder, wire: Wire
) -> None:
    endpoint = wire.endpoint
    recorder.status = reply.status
    encoding = reply.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", ""}:
        recorder.fail(COMPRESSED.format(quoted(endpoint, encoding)))
        return
    if reply.status != GOOD:
        body = await reply.first_bytes(MOST_QUOTED_BYTES)
        recorder.fail(status_problem(endpoint, reply.status, reply.headers, body))
        return
    kind = reply.content_type
    if kind in UNNAMED:
        kind = "application/x-ndjson" if message.is_lines else "text/event-stream"
    if kind not in STREAMS:
        body = await reply.first_bytes(MOST_QUOTED_BYTES)
        recorder.fail(content_problem(endpoint, kind, body))
        return
    reading = _Reading(
        wire, recorder, STREAMS[kind](), read_line if message.is_lines else read_event
    )
    async with aclosing(reply.parts()) as parts:
        await reading.read(parts)


class _Reading:
    """Reads one stream into its recorder."""

    def __init__(
        self, wire: Wire, recorder: RequestRecorder, events: EventReader, read: ReadContent
    ) -> None:
        self._endpoint = wire.endpoint
        self._recorder = recorder
        self._events = events
        self._read = read
        self._size = 0

    async def read(self, parts: AsyncGenerator[BodyPart]) -> None:
        """Read until the answer is over, the stream ends, or something is wrong."""
        recorder = self._recorder
        last: BodyPart | None = None
        async for last in parts:
            recorder.came(last)
            self._size += len(last.content)
            try:
                self._take(self._events.feed(last.content), last)
            except EventTooLongError:
                recorder.fail(f"{self._endpoint.address} sent an event that does not end")
            if self._size > MOST_BYTES or recorder.arrivals > MOST_ARRIVALS:
                recorder.fail(f"{self._endpoint.address} sent more than any answer has")
            if recorder.state.is_final:
                return
            if recorder.is_over:
                recorder.end()
                await _drain(parts)
                return
        if last is not None:
            self._take(self._events.finish(), last)
        recorder.end()

    def _take(self, events: list[StreamEvent], part: BodyPart) -> None:
        for event in events:
            if self._recorder.state.is_final:
                return
            if event.content is None:
                self._recorder.alive(part)
            else:
                self._take_content(event, event.content, part)

    def _take_content(self, event: StreamEvent, content: bytes, part: BodyPart) -> None:
        address = self._endpoint.address
        try:
            chunk = self._read(content)
        except NotJsonError:
            words = quoted(self._endpoint, content.decode("utf-8", "replace"))
            if event.is_cut:
                self._recorder.end(f"{address} ended the stream in the middle of an event: {words}")
            else:
                self._recorder.fail(f"{address} sent an event that is no JSON object: {words}")
            return
        if chunk.error is not None:
            self._recorder.fail(f"{address} reports: {quoted(self._endpoint, chunk.error)}")
            return
        self._recorder.take(chunk, part)


async def _drain(parts: AsyncGenerator[BodyPart]) -> None:
    """Read what follows an answer, shortly, so that the connection can be used again."""
    with suppress(TimeoutError, *WIRE_ERRORS):
        async with asyncio.timeout(DRAIN_S):
            async for _part in parts:
                pass
