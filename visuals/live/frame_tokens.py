"""The tokens and the text of a frame, as many as fit into it. No torch, no page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from inference.records.model import TokenPiece
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from visuals.charts.tokens import (
    Item,
    output_item,
    piece_of,
    pieces_of,
    text_added,
    text_bytes,
    token_item,
)
from visuals.live.tables import json_size

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
        begin: Steps drawn before the frame.
        done: Steps drawn with it.
        pieces: The bytes of all tokens that the frame needs.
        outputs: The tokens that the frame's steps selected, with what else was likely.
    """

    trace: RunTrace
    begin: int
    done: int
    pieces: Pieces
    outputs: list[Item]

    @property
    def fresh(self) -> tuple[StepEvent, ...]:
        """The steps of the frame."""
        return self.trace.events[self.begin : self.done]

    @property
    def events(self) -> tuple[StepEvent, ...]:
        """All steps up to and with the frame."""
        events = self.trace.events
        return events if self.done == len(events) else events[: self.done]

    @property
    def decode_steps(self) -> int:
        """Decode steps up to and with the frame."""
        return sum(event.phase is Phase.DECODE for event in self.events)


def needed_pieces(trace: RunTrace, start: int, begin: int) -> Pieces:
    """Return the bytes of all tokens that a frame from ``start``, step ``begin``, may need."""
    ids = {token_id for _, token_id in _prompt_ids(trace, start)}
    ids |= _selected(trace.events[max(begin - _STEPS_BACK, 0) : begin])
    fresh = trace.events[begin : begin + _MOST_STEPS]
    ids |= _selected(fresh) | _likely(fresh)
    return pieces_of(trace.pieces, ids) if ids else {}


def prompt_items(trace: RunTrace, start: int, pieces: Pieces) -> list[Item]:
    """Return row, id, bytes, text and kind of prompt tokens from a cursor on, as many as fit."""
    items = [
        [number, *token_item(piece_of(token_id, pieces))]
        for number, token_id in _prompt_ids(trace, start)
    ]
    return items[: _fitting([json_size(item) for item in items], ITEM_BYTES)]


def fitting_steps(trace: RunTrace, begin: int, room: int, pieces: Pieces) -> list[list[Item]]:
    """Return the tokens of the steps from ``begin`` on that fit; of one step at least."""
    number = {request.request_id: n for n, request in enumerate(trace.requests)}
    used = 0
    steps: list[list[Item]] = []
    for event in trace.events[begin : begin + _MOST_STEPS]:
        items = [
            output_item(row, (number.get(row.request_id, 0), event.index), pieces)
            for row in event.rows
            if row.token_id is not None
        ]
        used += _step_size(event, items, pieces)
        if used > room and steps:
            return steps
        steps.append(items)
    return steps


def text_parts(drawn: Drawn, *, is_final: bool) -> list[Frame]:
    """Return, for each request, the text that the frame's steps complete.

    ``add`` goes behind the text so far; ``held`` bytes wait for the rest of their character. Once
    the run is over nothing completes them: ``end`` then stands after all text.
    """
    is_over = is_final and drawn.done == len(drawn.trace.events)
    before_from = max(drawn.begin - _STEPS_BACK, 0)
    before = _ids_of_requests(drawn.trace.events[before_from : drawn.begin])
    added = _ids_of_requests(drawn.fresh)
    parts: list[Frame] = []
    for number, request in enumerate(drawn.trace.requests):
        earlier = text_bytes(before.get(request.request_id, ()), drawn.pieces)
        fresh = text_bytes(added.get(request.request_id, ()), drawn.pieces)
        text, held = text_added(earlier, fresh)
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


def _step_size(event: StepEvent, items: list[Item], pieces: Pieces) -> int:
    """Return the bytes that a step takes in a frame, at most."""
    ids = (row.token_id for row in event.rows if row.token_id is not None)
    text = sum(len(piece_of(token_id, pieces).raw) for token_id in ids)
    masks = _MASK_ROW * len(event.rows)
    return _STEP_ROWS + masks + json_size(items) + text * _BYTE_IN_JSON


def _selected(events: Sequence[StepEvent]) -> set[int]:
    """Return the ids that the steps selected."""
    return {row.token_id for e in events for row in e.rows if row.token_id is not None}


def _likely(events: Sequence[StepEvent]) -> set[int]:
    """Return the ids that the steps rated likely."""
    return {likely.token_id for e in events for row in e.rows for likely in row.candidates}


def _ids_of_requests(events: Sequence[StepEvent]) -> dict[str, list[int]]:
    """Return the tokens that some of the steps selected, by the request they belong to."""
    ids: dict[str, list[int]] = {}
    for event in events:
        for row in event.rows:
            if row.token_id is not None:
                ids.setdefault(row.request_id, []).append(row.token_id)
    return ids
