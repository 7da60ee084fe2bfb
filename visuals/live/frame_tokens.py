"""The tokens and the text of a frame, as many as fit into it. No torch, no page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from inference.records import Phase, RowStep, RunTrace, StepEvent, TokenPiece
from visuals.live.tables import json_size
from visuals.tokens import Item, output_item, piece_of, pieces_of, text_added, text_bytes, token_item

ITEM_BYTES = 40 * 1024  # what prompt tokens and steps may take; the rest is bounded by itself
_LEAST_PROMPT_ITEM = 16
_LEAST_STEP = 128
_STEP_ROWS = 380  # a step's rows in the charts and the mask
_BYTE_IN_JSON = 6  # \u0000
_CHARACTER_TAIL = 3  # bytes of a character that is not complete

Frame: TypeAlias = dict[str, object]
Pieces: TypeAlias = dict[int, TokenPiece]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The part of a run that a viewer has drawn once a frame is.

    Attributes:
        seen: Steps drawn before the frame.
        done: Steps drawn with it.
    """

    trace: RunTrace
    seen: int
    done: int

    @property
    def fresh(self) -> tuple[StepEvent, ...]:
        """The steps of the frame."""
        return self.trace.events[self.seen : self.done]

    @property
    def events(self) -> tuple[StepEvent, ...]:
        """All steps up to and with the frame."""
        events = self.trace.events
        return events if self.done == len(events) else events[: self.done]

    @property
    def decode_steps(self) -> int:
        """Decode steps up to and with the frame."""
        return sum(event.phase is Phase.DECODE for event in self.events)


def prompt_items(trace: RunTrace, start: int) -> list[Item]:
    """Return row, id, bytes, text and kind of the prompt tokens from a cursor on, as many as fit."""
    most = ITEM_BYTES // _LEAST_PROMPT_ITEM
    wanted: list[tuple[int, int]] = []
    offset = 0
    for number, request in enumerate(trace.requests):
        skipped = max(start - offset, 0)
        ids = request.prompt_ids[skipped : skipped + most - len(wanted)]
        wanted.extend((number, token_id) for token_id in ids)
        offset += len(request.prompt_ids)
    pieces = pieces_of(trace.pieces, {token_id for _, token_id in wanted})
    items = [[number, *token_item(piece_of(token_id, pieces))] for number, token_id in wanted]
    return items[: _fitting([json_size(item) for item in items], ITEM_BYTES)]


def fitting_steps(trace: RunTrace, seen: int, room: int) -> int:
    """Return how many of the steps not seen fit into a frame: one at least where there are any."""
    events = trace.events[seen : seen + ITEM_BYTES // _LEAST_STEP]
    pieces = pieces_of(trace.pieces, _ids(events))
    return _fitting([_step_size(event, pieces) for event in events], room)


def output_items(drawn: Drawn) -> list[Item]:
    """Return the tokens that the frame's steps selected, with what else was likely."""
    pieces = pieces_of(drawn.trace.pieces, _ids(drawn.fresh))
    number = {request.request_id: n for n, request in enumerate(drawn.trace.requests)}
    return [
        output_item(row, (number.get(row.request_id, 0), event.index), pieces)
        for event in drawn.fresh
        for row in event.rows
        if row.token_id is not None
    ]


def text_parts(drawn: Drawn, *, is_final: bool) -> list[Frame]:
    """Return, for each request, the text that the frame's steps complete.

    ``add`` is appended to the text so far; ``held`` bytes wait for the rest of their character. Once the
    run is over nothing completes them: ``end`` then stands after all text, in place of what it was.
    """
    is_over = is_final and drawn.done == len(drawn.trace.events)
    parts: list[Frame] = []
    for number, request in enumerate(drawn.trace.requests):
        added = _row_bytes(drawn, request.request_id)
        before = _bytes_before(drawn, request.request_id)
        text, held = text_added(before, added)
        end = held.decode("utf-8", errors="replace") if is_over else ""
        parts.append({"row": number, "add": text, "held": len(held), "end": end})
    return parts


def _fitting(sizes: list[int], room: int) -> int:
    """Return how many of the first items fit, one at least."""
    used = 0
    for count, size in enumerate(sizes):
        used += size
        if used > room and count:
            return count
    return len(sizes)


def _step_size(event: StepEvent, pieces: Pieces) -> int:
    """Return the bytes that a step takes in a frame, at most."""
    size = _STEP_ROWS
    for row in event.rows:
        if row.token_id is not None:
            size += json_size(output_item(row, (0, event.index), pieces)) + 4
            size += len(piece_of(row.token_id, pieces).raw) * _BYTE_IN_JSON
    return size


def _ids(events: tuple[StepEvent, ...]) -> set[int]:
    """Return the ids that the steps selected or found likely."""
    rows = [row for event in events for row in event.rows]
    selected = {row.token_id for row in rows if row.token_id is not None}
    return selected | {candidate.token_id for row in rows for candidate in row.candidates}


def _selected(event: StepEvent, request_id: str) -> list[int]:
    """Return the tokens that a step selected for one request."""
    return [_id for row in event.rows if (_id := _id_of(row, request_id)) is not None]


def _id_of(row: RowStep, request_id: str) -> int | None:
    """Return a row's token when the row is the request's."""
    return row.token_id if row.request_id == request_id else None


def _row_bytes(drawn: Drawn, request_id: str) -> bytes:
    """Return the bytes that the frame's steps give to one request's text."""
    ids = [token_id for event in drawn.fresh for token_id in _selected(event, request_id)]
    return text_bytes(ids, pieces_of(drawn.trace.pieces, set(ids)))


def _bytes_before(drawn: Drawn, request_id: str) -> bytes:
    """Return the last bytes of one request's text before the frame: enough to go on from."""
    raw = b""
    for event in reversed(drawn.trace.events[: drawn.seen]):
        ids = _selected(event, request_id)
        raw = text_bytes(ids, pieces_of(drawn.trace.pieces, set(ids))) + raw
        if len(raw) >= _CHARACTER_TAIL:
            break
    return raw
