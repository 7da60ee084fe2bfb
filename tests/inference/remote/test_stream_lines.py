"""Bytes to events, cut anywhere."""

from __future__ import annotations

import pytest

from inference.remote.stream_lines import (
    MOST_EVENT_BYTES,
    EventReader,
    EventTooLongError,
    JsonLines,
    ServerSentEvents,
    StreamEvent,
)

STREAM = (
    b'\xef\xbb\xbf: keep-alive\n\ndata: {"a": "\xf0\x9f\x98\x80"}\r\n\r\n'
    b"event: x\rid: 3\rdata:  two\rdata:lines\r\rretry: 5\n\n"
    b"data: \xe2\x80\xa8 and \xc2\x85 end no line\n\ndata: [DONE]\n\n"
)
EVENTS = [
    StreamEvent(None),
    StreamEvent(b'{"a": "\xf0\x9f\x98\x80"}'),
    StreamEvent(b" two\nlines"),
    StreamEvent(b"\xe2\x80\xa8 and \xc2\x85 end no line"),
    StreamEvent(b"[DONE]"),
]


def read_all(reader: EventReader, pieces: list[bytes]) -> list[StreamEvent]:
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.finish()


def test_events_are_the_same_wherever_the_stream_is_cut() -> None:
    for first in range(len(STREAM) + 1):
        pieces = [STREAM[:first], STREAM[first:]]
        assert read_all(ServerSentEvents(), pieces) == EVENTS, first

    singles = [STREAM[at : at + 1] for at in range(len(STREAM))]
    assert read_all(ServerSentEvents(), singles) == EVENTS


def test_an_event_is_whole_with_the_first_byte_of_its_line_end() -> None:
    """Whether an LF follows the CR is known with the next read, which may come much later."""
    reader = ServerSentEvents()

    assert reader.feed(b"data: a\r\n\r") == [StreamEvent(b"a")]
    assert reader.feed(b"\ndata: b\n\n") == [StreamEvent(b"b")]


def test_an_event_that_no_empty_line_ended_is_marked_as_cut() -> None:
    assert read_all(ServerSentEvents(), [b"data: a\n"]) == [StreamEvent(b"a", is_cut=True)]
    assert read_all(ServerSentEvents(), [b'data: {"a']) == [StreamEvent(b'{"a', is_cut=True)]


def test_lines_of_json_are_the_same_wherever_the_stream_is_cut() -> None:
    stream = b'{"a": "\xc3\xa9"}\r\n\n{"b": "\xe2\x80\xa8"}\n{"c"'
    events = [
        StreamEvent(b'{"a": "\xc3\xa9"}'),
        StreamEvent(b'{"b": "\xe2\x80\xa8"}'),
        StreamEvent(b'{"c"', is_cut=True),
    ]

    for first in range(len(stream) + 1):
        assert read_all(JsonLines(), [stream[:first], stream[first:]]) == events, first


@pytest.mark.parametrize("reader", [ServerSentEvents(), JsonLines()], ids=["sse", "lines"])
def test_an_event_without_an_end_is_refused(reader: EventReader) -> None:
    for piece in (b"data: ", b"x" * (MOST_EVENT_BYTES // 2), b"x" * (MOST_EVENT_BYTES // 3)):
        assert reader.feed(piece) == []

    with pytest.raises(EventTooLongError):
        reader.feed(b"x" * (MOST_EVENT_BYTES // 4))
