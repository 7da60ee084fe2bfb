"""Attention weights turned into a map of bounded size, for the heads asked for and no others.

Weights are formed for a few queries at a time and reduced at once, so the memory needed does not
grow with the square of the context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inference.engine.attention_calls import Reader, Seen
from inference.records.attention import AttentionChoice, AttentionMap

MAX_BYTES = 2**20  # of one map
CELL_BYTES = MAX_BYTES // 16 * 15  # of its weights; the rest is for the first token's columns
MAX_CELLS = 256  # along an axis, of a map with several queries
MAX_EXACT_KV = 8192  # keys of one query's row that are never binned
WORK_WEIGHTS = 2**21  # weights formed at a time: 8 MiB in float32

# [plane, query cell, kv cell]; the same of the first token alone, and of its cell without it.
Cells = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where one row's tokens are among the columns that a forward pass fed and stored.

    Attributes:
        slot: The row.
        fed_columns: Columns fed in the pass, padding included.
        columns: Columns fed since the start.
        first_query: Leave out the queries before this one, counted from the first real one.
        query_tokens: Queries to cover.
        step_index: Forward passes since the start before this one.
        is_real: [column], True for tokens of the row; None when there is no padding.
        is_cut: Leave out the keys after the last query covered, which none of them may read.
    """

    slot: int
    fed_columns: int
    columns: int
    query_tokens: int
    step_index: int = 0
    first_query: int = 0
    is_real: NDArray[np.bool_] | None = None
    is_cut: bool = False

    @property
    def query_columns(self) -> NDArray[np.int64]:
        """Columns of the queries covered."""
        fed = np.arange(self.columns - self.fed_columns, self.columns)
        real = fed if self.is_real is None else fed[self.is_real[fed]]
        return real[self.first_query : self.first_query + self.query_tokens]

    def kv_columns(self, kernel_columns: int) -> tuple[NDArray[np.int64], int]:
        """Return the columns of the row's keys in a kernel's keys, and the first one's column.

        Args:
            kernel_columns: Keys the kernel was given: the newest ones, or with the room that a
                static cache reserves, all and nothing after.
        """
        first = max(self.columns - kernel_columns, 0)
        end = int(self.query_columns[-1]) + 1 if self.is_cut else self.columns
        held = np.arange(first, end)
        return (held if self.is_real is None else held[self.is_real[held]]), first

    def position(self, column: int) -> int:
        """Return which of the row's tokens a column holds."""
        return column if self.is_real is None else int(self.is_real[:column].sum())

    def holds(self, query: int) -> bool:
        """Return whether the query at this position is covered."""
        columns = self.query_columns
        return bool(len(columns)) and 0 <= query - self.position(int(columns[0])) < len(columns)

    def only(self, query: int) -> Span:
        """Return the span of the one query at this position."""
        start = self.position(int(self.query_columns[0]))
        return replace(self, first_query=self.first_query + query - start, query_tokens=1)


def attention_map(choice: AttentionChoice, seen: Seen, span: Span) -> AttentionMap:
    """Return the weights of the chosen heads for the span's queries, binned where they are many."""
    call = seen.unpacked(span.fed_columns)
    return _map(choice, call, call.reader(span.slot, choice.head), span)


def maps_in_parts(
    choice: AttentionChoice, seen: Seen, span: Span, parts: Sequence[int]
) -> Iterator[AttentionMap]:
    """Yield the maps that the span's queries would have given, had they been fed in these parts.

    Args:
        choice: The heads.
        seen: The one pass that fed all of them.
        span: Where the row's tokens are.
        parts: Queries of each map, in order.
    """
    call = seen.unpacked(span.fed_columns)
    read = call.reader(span.slot, choice.head)
    first = span.first_query
    for number, queries in enumerate(parts):
        part = replace(span, first_query=first, query_tokens=queries, is_cut=True)
        first += queries
        yield _map(choice, call, read, replace(part, step_index=span.step_index + number))


def _map(choice: AttentionChoice, call: Seen, read: Reader, span: Span) -> AttentionMap:
    """Return the map of one span."""
    kv_columns, first_column = span.kv_columns(call.kv_columns)
    query_columns = span.query_columns
    heads = tuple(range(call.heads)) if choice.head is None else (choice.head,)
    planes = heads if choice.is_all_heads or choice.head is not None else ()
    query_bin, kv_bin = bins(len(planes) or 1, len(query_columns), len(kv_columns))
    start = span.position(int(kv_columns[0]))
    rows = _Rows(
        call=call,
        read=read,
        heads=len(heads),
        is_mean=not planes,
        queries=query_columns - (span.columns - span.fed_columns),
        keys=kv_columns - first_column,
    )
    cells, first, rest = rows.reduced(query_bin, kv_bin)
    dtype = np.float32 if cells.numel() * 4 <= CELL_BYTES else np.float16
    not_numbers = int(cells.isnan().sum())
    return AttentionMap(
        choice=choice,
        step_index=span.step_index,
        heads=planes,
        query_start=span.position(int(query_columns[0])),
        query_tokens=len(query_columns),
        kv_start=start,
        kv_tokens=len(kv_columns),
        query_bin=query_bin,
        kv_bin=kv_bin,
        weights=_frozen(cells, dtype),
        first_token=_frozen(first, dtype) if start == 0 else None,
        rest_of_first_cell=_frozen(rest, dtype) if start == 0 else None,
        reason=_nan_sentence(not_numbers) if not_numbers else "",
    )


def bins(planes: int, query_tokens: int, kv_tokens: int) -> tuple[int, int]:
    """Return how many queries and keys a cell stands for, so that a map stays within its bytes."""
    if query_tokens == 1:
        exact = min(MAX_EXACT_KV, CELL_BYTES // (2 * planes))
        return 1, -(-kv_tokens // exact)
    side = min(MAX_CELLS, isqrt(CELL_BYTES // (2 * planes)))
    return -(-query_tokens // side), -(-kv_tokens // side)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of weights that one map is made of."""

    call: Seen
    read: Reader
    heads: int
    is_mean: bool
    queries: NDArray[np.int64]
    keys: NDArray[np.int64]

    def reduced(self, query_bin: int, kv_bin: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return [plane, query cell, kv cell] and what AttentionMap keeps of the first token."""
        at_once = max(1, WORK_WEIGHTS // (self.heads * self.call.kv_columns))
        block = max(1, at_once // query_bin) * query_bin
        whole = self._room(query_bin, kv_bin)
        for start in range(0, len(self.queries), block):
            queries = self.queries[start : start + block]
            pieces = [
                self._cells(queries[index : index + at_once], min(query_bin, at_once), kv_bin)
                for index in range(0, len(queries), at_once)
            ]
            part = pieces[0] if len(pieces) == 1 else _largest(pieces)
            # Copied into place: small results kept between large ones would cut up the heap.
            for target, cells in zip(whole, part, strict=True):
                target[:, start // query_bin :][:, : cells.shape[1]] = cells
        return whole

    def _room(self, query_bin: int, kv_bin: int) -> Cells:
        """Return room for the cells of all queries."""
        planes = 1 if self.is_mean else self.heads
        count = -(-len(self.queries) // query_bin)
        width = -(-len(self.keys) // kv_bin)
        cells = torch.empty((planes, count, width), device=self.call.device)
        return cells, cells.new_empty((planes, count)), cells.new_empty((planes, count))

    def _cells(self, queries: NDArray[np.int64], query_bin: int, kv_bin: int) -> Cells:
        """Return the cells of a few queries, formed at once."""
        weights = self.read(queries)
        if len(self.keys) < self.call.kv_columns:
            weights = weights[:, :, torch.from_numpy(self.keys).to(weights.device)]
        if self.is_mean:
            weights = weights.mean(dim=0, keepdim=True)
        rest = weights[:, :, 1:kv_bin]
        rest = rest.amax(dim=2) if rest.shape[2] else torch.zeros_like(weights[:, :, 0])
        return (
            _binned(_binned(weights, 2, kv_bin), 1, query_bin),
            _binned(weights[:, :, 0], 1, query_bin),
            _binned(rest, 1, query_bin),
        )


def _binned(weights: Tensor, axis: int, size: int) -> Tensor:
    """Return the largest of each ``size`` neighbours along an axis; NaN where one of them is."""
    if size == 1:
        return weights
    missing = -weights.shape[axis] % size
    if missing:
        shape = [missing if at == axis else length for at, length in enumerate(weights.shape)]
        weights = torch.cat([weights, weights.new_full(shape, -inf)], dim=axis)
    return weights.unflatten(axis, (-1, size)).amax(dim=axis + 1)


def _largest(pieces: Sequence[Cells]) -> Cells:
    """Return the pieces of one query bin as its cells."""
    cells, first, rest = (
        torch.cat(part, dim=1).amax(dim=1, keepdim=True) for part in zip(*pieces, strict=True)
    )
    return cells, first, rest


def _nan_sentence(cells: int) -> str:
    return f"{cells:,} cells hold weights that are not numbers (NaN)"


def _frozen(weights: Tensor, dtype: type[np.float16 | np.float32]) -> NDArray[Any]:
    array = weights.cpu().numpy().astype(dtype)
    array.flags.writeable = False
    return array
