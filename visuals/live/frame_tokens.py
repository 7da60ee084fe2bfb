"""The tokens and the text of a frame, as many as fit into it. No torch, no page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from inference.records import Phase, RunTrace, StepEvent, TokenPiece
from visuals.live.tables import json_size
from visuals.tokens import (
    Item,
    output_item,
    piece_of,
    pieces_of,
    text_added,
    text_bytes,
    token_item,
)

ITEM_BYTES = 40 * 1024  # what prompt tokens and steps may take; the rest is bounded by itself
_LEAST_PROMPT_ITEM = 16
_LEAST_STEP = 128
_STEP_ROWS = 600  # a step's rows in the charts and the mask
_MASK_ROW = 20  # number, T and L of a row of a batch
_BYTE_IN_JSON = 6  # \u0000
_MOST_STEPS = ITEM_BYTES // _LEAST_STEP
_STEPS_BACK = 16  # hold the last three bytes of the text before: control tokens give none

Frame: TypeAlias = dict[str, object]
Pieces: TypeAlias = dict[int, TokenPiece]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The part of a run that a viewer has drawn once a frame is.

    Attributes:
        seen: Steps drawn before the frame.
        done: Steps drawn with it.
        pieces: The bytes of all tokens that the frame needs.
    """

    trace: RunTrace
    seen: int
    done: int
    pieces: Pieces

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


def needed_pieces(trace: RunTrace, start: int, seen: int) -> Pieces:
    """Return the bytes of all tokens that a frame from ``start``, step ``seen``, may need."""
    ids = {token_id for _, token_id in _prompt_ids(trace, start)}
    ids |= _ids(trace.events[max(seen - _STEPS_BACK, 0) : seen + _MOST_STEPS])
    return pieces_of(trace.pieces, ids) if ids else {}


def prompt_items(trace: RunTrace, start: int, pieces: Pieces) -> list[Item]:
    """Return row, id, bytes, text and kind of prompt tokens from a cursor on, as many as fit."""
    items = [
        [number, *token_item(piece_of(token_id, pieces))]
        for number, token_id in _prompt_ids(trace, start)
    ]
    return items[: _fitting([json_size(item) for item in items], ITEM_BYTES)]


def fitting_steps(trace: RunTrace, seen: int, room: int, pieces: Pieces) -> int:
    """Return how many of the steps not seen fit into a frame: one at least where there are any."""
    events = trace.events[seen : seen + _MOST_STEPS]
    return _fitting([_step_size(event, pieces) for event in events], room)


def output_items(drawn: Drawn) -> list[Item]:
    """Return the tokens that the frame's steps selected, with what else was likely."""
    number = {request.request_id: n for n, request in enumerate(drawn.trace.requests)}
    return [
        output_item(row, (number.get(row.request_id, 0), event.index), drawn.pieces)
        for event in drawn.fresh
        for row in event.rows
        if row.token_id is not None
    ]


def text_parts(drawn: Drawn, *, is_final: bool) -> list[Frame]:
    """Return, for each request, the text that the frame's steps complete.

    ``add`` goes behind the text so far; ``held`` bytes wait for the rest of their character. Once
    the run is over nothing completes them: ``end`` then stands after all text.
    """
    is_over = is_final and drawn.done == len(drawn.trace.events)
    before_from = max(drawn.seen - _STEPS_BACK, 0)
    parts: list[Frame] = []
    for number, request in enumerate(drawn.trace.requests):
        before = _row_bytes(drawn, request.request_id, before_from, drawn.seen)
        added = _row_bytes(drawn, request.request_id, drawn.seen, drawn.done)
        text, held = text_added(before, added)
        end = held.decode("utf-8", errors="replace") if is_over else ""
        parts.append({"row": number, "add": text, "held": len(held), "end": end})
    return parts


def _prompt_ids(trace: RunTrace, start: int) -> list[tuple[int, int]]:
    """Return row and id of the prompt tokens from a cursor on, no more than could ever fit."""
    most = ITEM_BYTES // _LEAST_PROMPT_ITEM
    wanted: list[tuple[int, int]] = []
    offset = 0
    for number, request in enumerate(trace.requests):
        skipped = max(start - offset, 0)
        ids = request.prompt_ids[skipped : skipped + most - len(wanted)]
        wanted.extend((number, token_id) for token_id in ids)
        offset += len(request.prompt_ids)
    return wanted


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
        size += _MASK_ROW
        if row.token_id is not None:
            size += json_size(output_item(row, (0, event.index), pieces)) + 4
            size += len(piece_of(row.token_id, pieces).raw) * _BYTE_IN_JSON
    return size


def _ids(events: Sequence[StepEvent]) -> set[int]:
    """Return the ids that the steps selected or found likely."""
    rows = [row for event in events for row in event.rows]
    selected = {row.token_id for row in rows if row.token_id is not None}
    return selected | {candidate.token_id for row in rows for candidate in row.candidates}


def _row_bytes(drawn: Drawn, request_id: str, first: int, last: int) -> bytes:
    """Return the bytes that some of the steps give to one request's text."""
    ids = [
        row.token_id
        for event in drawn.trace.events[first:last]
        for row in event.rows
        if row.token_id is not None and row.request_id == request_id
    ]
    return text_bytes(ids, drawn.pieces)
