"""Attention maps to a run file's text and back, small and bounded.

Weights go as half-precision numbers: first the high bytes of all of them, which repeat, then the
low ones, compressed together and written as base64. What a file declares is checked before any
of it is unpacked, and every weight after that. No torch.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from inference.records.attention import AttentionChoice, AttentionMap, MapLayout, PackedAttention
from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs.coarse_weights import coarser

BUDGET_BYTES = 16 * 2**20  # of a run's bodies, as text
MAX_WEIGHTS = 2**24  # of one choice: 32 MiB unpacked
MAX_RUN_WEIGHTS = 2**26  # of all choices of a run
MAX_CHOICES = 256
MAX_BIN = 2**20
COARSEST = 64  # keys that share a cell where the budget is short
ONE_BITS = 0x3C00  # 1.0 in half precision; a positive number's bits grow with it
NAN_BITS = 0x7E00
LEVEL = 6  # of zlib; 9 gains half a per cent

Halves = NDArray[np.uint16]


def packed(
    choice: AttentionChoice,
    maps: Sequence[AttentionMap],
    *,
    budget_bytes: int = BUDGET_BYTES,
    note: str = "",
) -> PackedAttention | None:
    """Return the maps of one choice for a run file; None when even the coarsest are too large.

    Rows are exact as long as they fit; then neighbouring keys share a cell, the largest weight
    among them.

    Args:
        choice: What the maps are of.
        maps: In the order of their steps.
        budget_bytes: Of the packed text.
        note: How they were captured.
    """
    size = 1
    while maps and size <= COARSEST:
        drawn = [_coarse(one, size) for one in maps]
        if sum(_weights_of(layout_of(one)) for one in drawn) <= MAX_WEIGHTS:
            body = _body(drawn)
            if len(body) <= budget_bytes:
                layouts = tuple(layout_of(one) for one in drawn)
                return PackedAttention(choice=choice, maps=layouts, body=body, note=note)
        size *= 2
    return None


def packed_together(
    captures: Iterable[tuple[AttentionChoice, Sequence[AttentionMap], str]],
    before: Sequence[PackedAttention] = (),
    *,
    budget_bytes: int = BUDGET_BYTES,
) -> tuple[PackedAttention, ...]:
    """Return choices with their maps and notes within the budget of one run, the first ones first.

    A choice that does not fit is left out.

    Args:
        captures: To be packed.
        before: Those of the run's file, which stay.
        budget_bytes: Of the packed text of all of them.
    """
    kept = list(before)
    room = budget_bytes - sum(len(one.body) for one in kept)
    weights = MAX_RUN_WEIGHTS - sum(_weights_of(one) for each in kept for one in each.maps)
    for choice, maps, note in captures:
        if any(choice == one.choice for one in kept):
            continue
        one = packed(choice, maps, budget_bytes=room, note=note)
        count = 0 if one is None else sum(_weights_of(layout) for layout in one.maps)
        if one is None or count > weights or len(kept) == MAX_CHOICES:
            continue
        room, weights = room - len(one.body), weights - count
        kept.append(one)
    return tuple(kept)


def unpacked(attention: PackedAttention) -> tuple[AttentionMap, ...]:
    """Return the maps of one choice.

    Raises:
        RunFileError: They are damaged: not of their declared size, or no weights.
    """
    bits = _bits(attention)
    maps: list[AttentionMap] = []
    at = 0
    for layout in attention.maps:
        count = _weights_of(layout)
        maps.append(_map(attention.choice, layout, bits[at : at + count]))
        at += count
    return tuple(maps)


def attention_problem(run: RunTrace) -> str | None:
    """Return what is wrong with the attention that a run file declares; None when nothing is."""
    if len(run.attention) > MAX_CHOICES:
        return f"attention: more than {MAX_CHOICES} choices"
    if sum(len(one.body) for one in run.attention) > BUDGET_BYTES:
        return f"attention: larger than {BUDGET_BYTES >> 20} MiB"
    if len({one.choice for one in run.attention}) != len(run.attention):
        return "attention: two of the same choice"
    total = 0
    for index, one in enumerate(run.attention):
        problem = _choice_problem(one.choice, run) or _layout_problem(one, run)
        if problem is not None:
            return f"attention[{index}].{problem}"
        total += sum(_weights_of(layout) for layout in one.maps)
    return "attention: more weights than a run keeps" if total > MAX_RUN_WEIGHTS else None


def layout_of(captured: AttentionMap) -> MapLayout:
    """Return a map without its arrays."""
    shared = {field.name for field in fields(MapLayout)} - {"has_weights"}
    values = {name: getattr(captured, name) for name in shared}
    return MapLayout(**values, has_weights=captured.weights is not None)


def _choice_problem(choice: AttentionChoice, run: RunTrace) -> str | None:
    shape = run.info.shape
    if not 0 <= choice.layer < shape.num_hidden_layers:
        return "choice.layer: not one of the model's"
    if choice.head is not None and choice.head < 0:
        return "choice.head: negative"
    if not 0 <= choice.slot < len(run.requests):
        return "choice.slot: not one of the requests"
    return None


def _layout_problem(attention: PackedAttention, run: RunTrace) -> str | None:
    """Return what is impossible about the maps of a choice, given what the run fed."""
    fed = _fed_tokens(run, attention.choice.slot)
    weights = 0
    for index, layout in enumerate(attention.maps):
        problem = _map_problem(layout, fed)
        if problem is not None:
            return f"maps[{index}].{problem}"
        weights += _weights_of(layout)
        if weights > MAX_WEIGHTS:
            return "maps: more weights than a choice keeps"
    return None


def _map_problem(layout: MapLayout, fed: int) -> str | None:
    if not (1 <= layout.query_bin <= MAX_BIN and 1 <= layout.kv_bin <= MAX_BIN):
        return "query_bin: a cell stands for at least one query and one key"
    numbers = (layout.step_index, layout.query_start, layout.kv_start, *layout.heads)
    if min(*numbers, layout.query_tokens, layout.kv_tokens) < 0:
        return "query_start: a position, a count or a head below 0"
    if len(set(layout.heads)) != len(layout.heads):
        return "heads: two are the same"
    if layout.has_weights and min(layout.query_tokens, layout.kv_tokens) < 1:
        return "query_tokens: none"
    if layout.query_start + layout.query_tokens > fed or layout.kv_start + layout.kv_tokens > fed:
        return "query_tokens: more than the run fed"
    return None


def _fed_tokens(run: RunTrace, number: int) -> int:
    request_id = run.requests[number].request_id
    return sum(
        row.query_tokens
        for event in run.events
        for row in event.rows
        if row.request_id == request_id
    )


def _shape(layout: MapLayout) -> tuple[int, int, int]:
    """Return planes, query cells and kv cells."""
    rows = ceil(layout.query_tokens / layout.query_bin)
    return max(1, len(layout.heads)), rows, ceil(layout.kv_tokens / layout.kv_bin)


def _has_first(layout: MapLayout) -> bool:
    """Return whether what the first token got is not plain from the weights themselves."""
    return layout.kv_start == 0 and layout.kv_bin > 1


def _weights_of(layout: MapLayout) -> int:
    """Return how many numbers a map takes."""
    if not layout.has_weights:
        return 0
    planes, rows, width = _shape(layout)
    return planes * rows * (width + 2 * _has_first(layout))


def _coarse(captured: AttentionMap, size: int) -> AttentionMap:
    """Return a map in which so many neighbouring keys share a cell."""
    weights = captured.weights
    if size == 1 or weights is None or weights.shape[2] <= size:
        return captured
    first, rest = captured.first_token, captured.rest_of_first_cell
    if captured.kv_start == 0 and first is None:
        first = weights[:, :, 0]
    if captured.kv_start == 0:
        others = weights[:, :, 1:size].max(axis=2)
        rest = others if rest is None else np.maximum(others, rest)
    return replace(
        captured,
        kv_bin=captured.kv_bin * size,
        weights=coarser(weights, 2, size),
        first_token=first,
        rest_of_first_cell=rest,
    )


def _body(maps: Sequence[AttentionMap]) -> str:
    parts: list[Halves] = []
    for one in maps:
        if one.weights is None:
            continue
        parts.append(_halves(one.weights))
        if _has_first(layout_of(one)) and one.first_token is not None:
            rest = one.rest_of_first_cell
            parts.append(_halves(one.first_token))
            parts.append(_halves(one.first_token if rest is None else rest))
    bits = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint16)
    planes = bits.astype("<u2").view(np.uint8).reshape(-1, 2)
    squeezed = zlib.compress(planes[:, 1].tobytes() + planes[:, 0].tobytes(), LEVEL)
    return base64.b64encode(squeezed).decode("ascii")


def _halves(weights: NDArray[np.float16 | np.float32]) -> Halves:
    """Return the bits of weights; a softmax may exceed 1 by a rounding, and NaN has one form."""
    halves = np.clip(weights, 0, 1).astype(np.float16).flatten()
    bits = halves.view(np.uint16)
    bits[np.isnan(halves)] = NAN_BITS
    return bits


def _bits(attention: PackedAttention) -> Halves:
    """Return the numbers of all maps, checked."""
    expected = 2 * sum(_weights_of(layout) for layout in attention.maps)
    if expected > 2 * MAX_WEIGHTS or len(attention.body) > BUDGET_BYTES:
        raise RunFileError(_damaged("larger than a run keeps"))
    try:
        squeezed = base64.b64decode(attention.body, validate=True)
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(squeezed, expected + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise RunFileError(_damaged("the compression is broken")) from error
    if len(raw) != expected or (expected and not unpacker.eof):
        raise RunFileError(_damaged("not of the size that is declared"))
    count = expected // 2
    planes = np.frombuffer(raw, dtype=np.uint8)
    bits: Halves = np.stack([planes[count:], planes[:count]], axis=1).view("<u2").ravel()
    if not bool(((bits <= ONE_BITS) | (bits == NAN_BITS)).all()):
        raise RunFileError(_damaged("a weight is not between 0 and 1"))
    return bits


def _map(choice: AttentionChoice, layout: MapLayout, bits: Halves) -> AttentionMap:
    shared = {field.name: getattr(layout, field.name) for field in fields(MapLayout)}
    del shared["has_weights"]
    if not layout.has_weights:
        return AttentionMap(choice=choice, **shared)
    planes, rows, width = _shape(layout)
    cells = planes * rows * width
    halves = bits.view(np.float16)
    weights = halves[:cells].reshape(planes, rows, width)
    first = rest = None
    if _has_first(layout):
        first, rest = halves[cells:].reshape(2, planes, rows)
    elif layout.kv_start == 0:
        first, rest = weights[:, :, 0], np.zeros((planes, rows), dtype=np.float16)
    for array in (weights, first, rest):
        if array is not None:
            array.flags.writeable = False
    return AttentionMap(
        choice=choice, weights=weights, first_token=first, rest_of_first_cell=rest, **shared
    )


def _damaged(what: str) -> str:
    return f"the attention weights of this run are damaged: {what}; save the run again"
