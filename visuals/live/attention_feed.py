"""Attention maps as they travel to one viewer: bounded messages, only what this viewer lacks.

A message is a header in JSON behind its length in four bytes, then the arrays that it announces,
little-endian, without gaps. Pictures go in float16, binned by maximum to what a panel can draw; the
row under the pointer goes whole in float32. No torch, no page.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Any

import numpy as np

from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.run import RunTrace
from inference.runs.coarse_weights import Weights, coarser

MAX_MESSAGE_BYTES = 64 * 1024
PAYLOAD_BYTES = 44 * 1024  # of a message's arrays; the rest is for their headers
PICTURE_CELLS = 256 * 256  # of a map of several queries, all planes together
ROW_CELLS = 4096  # of one query's row, all planes together
MAX_ROW_CELLS = 1024  # of one query's row, one plane
MAX_EXACT_CELLS = 8192  # of the row under the pointer
MAX_BLOCKS = 64  # of one message: a header takes up to 300 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The attention weights of a run that are there.

    Attributes:
        choice: What is asked for; None for nothing.
        maps: In the order of their steps; of another choice until the next step brings one.
        exact_row: The query asked for last.
        notice: Why a choice is not possible; empty when it is.
        note: How they were captured, or that they are on their way; often empty.
        is_over: No step will follow.
    """

    choice: AttentionChoice | None = None
    maps: tuple[AttentionMap, ...] = ()
    exact_row: AttentionMap | None = None
    notice: str = ""
    note: str = ""
    is_over: bool = False


def played(captured: Captured, shown: RunTrace) -> Captured:
    """Return what was captured as far as a run that plays again has come."""
    choice = captured.choice
    if choice is None or choice.slot >= len(shown.requests):
        return captured
    request_id = shown.requests[choice.slot].request_id
    rows = (row for event in reversed(shown.events) for row in event.rows)
    newest = next((row for row in rows if row.request_id == request_id), None)
    stored = 0 if newest is None else newest.context_tokens
    maps = (one for one in captured.maps if one.query_start + one.query_tokens <= stored)
    return replace(captured, maps=tuple(maps))


@dataclass(frozen=True, slots=True, kw_only=True)
class MapBlock:
    """A few query rows of a map, ready to travel."""

    header: dict[str, object]
    arrays: tuple[Weights, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)


class Feed:
    """What one viewer has of one run's attention, and what it is sent next."""

    def __init__(self) -> None:
        self._choice: AttentionChoice | None = None
        self._state: dict[str, object] | None = None
        self._sent: set[int] = set()
        self._waiting: deque[MapBlock] = deque()
        self._asked: tuple[int, int | None] | None = None

    def ask(self, query: int, head: int | None) -> None:
        """Send the exact weights of one query as soon as they are there.

        Args:
            query: Its position.
            head: Of the planes shown, the one pointed at; None for the mean.
        """
        self._asked = (query, head)

    def next(self, captured: Captured) -> bytes | None:
        """Return the next message, None when this viewer has everything."""
        state = self._newest_state(captured)
        if state is not None:
            return message(state)
        exact = self._exact(captured)
        if exact is not None:
            return exact
        for map_ in captured.maps:
            if map_.choice == self._choice and map_.step_index not in self._sent:
                self._sent.add(map_.step_index)
                self._waiting.extend(blocks_of(map_))
        return self._blocks()

    def _newest_state(self, captured: Captured) -> dict[str, object] | None:
        """Return the header that says what is captured, when it has changed."""
        is_reset = self._state is None or captured.choice != self._choice
        if is_reset:
            self._choice = captured.choice
            self._sent.clear()
            self._waiting.clear()
            self._asked = None
        reasons = [map_.reason for map_ in captured.maps if map_.reason]
        state: dict[str, object] = {
            "kind": "state",
            "choice": choice_item(captured.choice),
            "notice": captured.notice,
            "note": captured.note,
            "over": captured.is_over,
            "reason": reasons[-1] if reasons else "",
        }
        if not is_reset and state == self._state:
            return None
        self._state = state
        return {**state, "reset": is_reset}

    def _exact(self, captured: Captured) -> bytes | None:
        if self._asked is None:
            return None
        query, head = self._asked
        map_ = exact_map(captured, query)
        if map_ is None or map_.weights is None:
            return None
        self._asked = None
        plane = map_.heads.index(head) if head in map_.heads else 0
        row = map_.weights[plane, query - map_.query_start].astype(np.float32)
        kv_bin = ceil(len(row) / MAX_EXACT_CELLS)
        header = {
            "kind": "row",
            "query": query,
            "head": head,
            "k0": map_.kv_start,
            "kn": map_.kv_tokens,
            "kb": kv_bin * map_.kv_bin,
        }
        return message(header, (coarser(row, 0, kv_bin),))

    def _blocks(self) -> bytes | None:
        taken: list[MapBlock] = []
        room = PAYLOAD_BYTES
        while self._waiting and len(taken) < MAX_BLOCKS:
            room -= self._waiting[0].nbytes
            if room < 0 and taken:
                break
            taken.append(self._waiting.popleft())
        if not taken:
            return None
        header = {"kind": "blocks", "blocks": [block.header for block in taken]}
        return message(header, [array for block in taken for array in block.arrays])


def exact_map(captured: Captured, query: int) -> AttentionMap | None:
    """Return a map that holds this query's weights unbinned, None when there is none."""
    exact = captured.exact_row
    for map_ in (*((exact,) if exact is not None else ()), *captured.maps):
        is_held = map_.query_start <= query < map_.query_start + map_.query_tokens
        is_exact = map_.query_bin == 1 and (map_.kv_bin == 1 or map_.query_tokens == 1)
        if is_held and is_exact and map_.weights is not None and map_.choice == captured.choice:
            return map_
    return None


def blocks_of(map_: AttentionMap) -> list[MapBlock]:
    """Return a map as it is drawn, in blocks of query rows that each fit into a message."""
    if map_.weights is None:
        return []
    query_bin, kv_bin = _bins(map_.weights.shape, map_.query_tokens)
    weights = coarser(coarser(map_.weights, 2, kv_bin), 1, query_bin).astype(np.float16)
    rest = _rest(map_, query_bin, kv_bin)
    planes, count, width = weights.shape
    rows_at_once = max(1, PAYLOAD_BYTES // (2 * planes * (width + 1)))
    rows = map_.query_bin * query_bin  # queries of one row of cells
    blocks: list[MapBlock] = []
    for start in range(0, count, rows_at_once):
        end = min(start + rows_at_once, count)
        header: dict[str, object] = {
            "step": map_.step_index,
            "heads": list(map_.heads),
            "q0": map_.query_start + start * rows,
            "qn": min(map_.query_tokens, end * rows) - start * rows,
            "qb": rows,
            "k0": map_.kv_start,
            "kn": map_.kv_tokens,
            "kb": map_.kv_bin * kv_bin,
            "shape": [planes, end - start, width],
            "rest": rest is not None,
            "first": map_.first_output_query,
        }
        parts = (weights[:, start:end],)
        blocks.append(
            MapBlock(
                header=header,
                arrays=parts if rest is None else (*parts, rest[:, start:end]),
            )
        )
    return blocks


def message(header: dict[str, Any], arrays: Iterable[Weights] = ()) -> bytes:
    """Return a header and its arrays as one message."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)  # so that the arrays begin at whole numbers
    body = b"".join(one.astype(one.dtype.newbyteorder("<")).tobytes() for one in arrays)
    return len(text).to_bytes(4, "little") + text + body


def choice_item(choice: AttentionChoice | None) -> dict[str, object] | None:
    """Return a choice as the panel knows it."""
    if choice is None:
        return None
    return {
        "layer": choice.layer,
        "head": choice.head,
        "all": choice.is_all_heads,
        "row": choice.slot,
    }


def choice_from(value: object) -> AttentionChoice | None:
    """Return the choice that a panel sent; None for anything that is none."""
    if not isinstance(value, dict):
        return None
    layer, head = whole(value.get("layer")), whole(value.get("head"))
    if layer is None:
        return None
    return AttentionChoice(
        layer=layer,
        head=head,
        is_all_heads=value.get("all") is True,
        slot=whole(value.get("row")) or 0,
    )


def whole(value: object) -> int | None:
    """Return a number that counts something, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value >= 0 else None


def _bins(shape: tuple[int, ...], query_tokens: int) -> tuple[int, int]:
    """Return how many cells of a map are drawn as one, along queries and keys."""
    planes, rows, width = shape
    if query_tokens == 1:
        return 1, ceil(width / max(1, min(MAX_ROW_CELLS, ROW_CELLS // planes)))
    side = max(1, isqrt(PICTURE_CELLS // planes))
    return ceil(rows / side), ceil(width / side)


def _rest(map_: AttentionMap, query_bin: int, kv_bin: int) -> Weights | None:
    """Return the first drawn cell of each row without the sequence's first token."""
    if map_.weights is None or map_.rest_of_first_cell is None:
        return None
    rest = map_.rest_of_first_cell[:, :, None]
    others = map_.weights[:, :, 1:kv_bin]
    largest = np.concatenate([rest, others], axis=2).max(axis=2)
    return coarser(largest, 1, query_bin).astype(np.float16)
