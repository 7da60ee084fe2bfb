"""Bytes of a stream to its events: server-sent events, or JSON a line. Cuts may be anywhere.

Lines end at CR, LF or CR LF and at nothing else, so that U+2028 in a text ends none; nothing is
decoded here, so that a read may end in the middle of a character.

Source:
    WHATWG HTML, "Server-sent events", section 9.2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

LINE_END = re.compile(rb"\r\n|\r|\n")
MOST_EVENT_BYTES = 64 * 2**20  # 10,000 tokens with 20 candidates each take a third of it
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLongError(Exception):
    """An event that has no end within all reason."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What one event holds; a comment that keeps the connection open holds None.

    Attributes:
        is_cut: The stream ended before the event did.
    """

    content: bytes | None
    is_cut: bool = False


class EventReader(Protocol):
    """Takes bytes as they come and gives the events that they complete."""

    def feed(self, received: bytes) -> list[StreamEvent]:
        """Return the events that end within these bytes."""
        ...

    def finish(self) -> list[StreamEvent]:
        """Return what the end of the stream left unfinished."""
        ...


class LineReader:
    """Splits bytes into lines, whatever cuts them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._skips_line_feed = False
        self._is_first = True

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield the lines that end within these bytes.

        Raises:
            EventTooLongError: A line has no end within all reason.
        """
        if self._skips_line_feed and received:
            received = received.removeprefix(b"\n")
            self._skips_line_feed = False
        start = 0
        for end in LINE_END.finditer(received):
            yield self._line(received[start : end.start()])
            start = end.end()
        # A line ends at its CR; whether an LF belongs to it, the next bytes tell.
        self._skips_line_feed = received.endswith(b"\r")
        if start < len(received):
            self._pieces.append(received[start:])
            self._size += len(received) - start
        if self._size > MOST_EVENT_BYTES:
            raise EventTooLongError

    def rest(self) -> bytes:
        """Return what came after the last line end."""
        return self._line(b"")

    def _line(self, end: bytes) -> bytes:
        line = b"".join((*self._pieces, end))
        self._pieces, self._size = [], 0
        if self._is_first:
            self._is_first = False
            return line.removeprefix(BYTE_ORDER_MARK)
        return line


class ServerSentEvents:
    """Reads ``text/event-stream``: an event is its ``data`` lines up to an empty line."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._content: list[bytes] = []
        self._size = 0

    def feed(self, received: bytes) -> list[StreamEvent]:
        """Return the events that end within these bytes.

        Raises:
            EventTooLongError: An event has no end within all reason.
        """
        events: list[StreamEvent] = []
        for line in self._lines.feed(received):
            if line.startswith(b":"):
                events.append(StreamEvent(None))
            elif line:
                self._take(line)
            elif self._content:
                events.append(StreamEvent(self._event()))
        return events

    def finish(self) -> list[StreamEvent]:
        """Return the event that no empty line ended, if there is one."""
        rest = self._lines.rest()
        if rest:
            self._take(rest)
        return [StreamEvent(self._event(), is_cut=True)] if self._content else []

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name != b"data":
            return
        self._content.append(value.removeprefix(b" "))
        self._size += len(value)
        if self._size > MOST_EVENT_BYTES:
            raise EventTooLongError

    def _event(self) -> bytes:
        content = b"\n".join(self._content)
        self._content, self._size = [], 0
        return content


class JsonLines:
    """Reads ``application/x-ndjson``: every line that is not empty is an event."""

    def __init__(self) -> None:
        self._lines = LineReader()

    def feed(self, received: bytes) -> list[StreamEvent]:
        """Return the events that end within these bytes.

        Raises:
            EventTooLongError: A line has no end within all reason.
        """
        return [StreamEvent(line) for line in self._lines.feed(received) if line.strip()]

    def finish(self) -> list[StreamEvent]:
        """Return the line that no line end ended, if there is one."""
        rest = self._lines.rest()
        return [StreamEvent(rest, is_cut=True)] if rest.strip() else []
