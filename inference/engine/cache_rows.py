"""Rows that join a growing cache and leave it, while the others stay.

Every row ends in the last column, so a row's columns are consecutive and padding is on its left
only. A row that joins is filled up on the left to the batch's width, or the batch to its; columns
that are padding for every row left are cut off. Only backend files feed a cache.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from inference.engine.caches import build_cache
from inference.models.family_limits import STATEFUL, STATES_ONLY, layer_kinds, padding_obstacle
from inference.records.errors import BackendError
from inference.records.options import CacheKind

ROW_LAYERS = frozenset({DynamicLayer, DynamicSlidingWindowLayer})


@dataclass(slots=True, eq=False, kw_only=True)
class CacheLane:
    """One cache and the rows in it.

    Attributes:
        attended: [row, kv], True for real tokens; None while all are.
        rows: Rows held.
        columns: Tokens of the longest row, padding included; what a windowed layer has dropped
            counts.
    """

    cache: Cache
    attended: torch.Tensor | None = None
    rows: int = 0
    columns: int = 0

    @property
    def is_real(self) -> torch.Tensor:
        """Which columns hold a real token, [row, kv]."""
        if self.attended is not None:
            return self.attended
        device = next(_filled(self.cache)).keys.device
        return torch.ones((self.rows, self.columns), dtype=torch.bool, device=device)

    def hold(self, attended: torch.Tensor) -> None:
        """Note what the cache holds after its rows were moved.

        Args:
            attended: [row, kv], True for real tokens.
        """
        self.rows, self.columns = attended.shape
        self.attended = None if bool(attended.all()) else attended


def rows_obstacle(model: PreTrainedModel) -> str:
    """Return why rows cannot join and leave this model's cache; an empty string when they can."""
    if layer_kinds(model) & (STATEFUL | STATES_ONLY):
        return "its recurrent layers keep one state a row that cannot be lined up with others"
    if obstacle := padding_obstacle(model):
        return obstacle
    if {type(layer) for layer in build_cache(model, CacheKind.DYNAMIC, None).layers} - ROW_LAYERS:
        return "its cache keeps more than keys and values of each token"
    return ""


def join(batch: CacheLane, arrival: CacheLane) -> None:
    """Put the rows of ``arrival`` behind those of ``batch``, whose cache takes them in."""
    columns = max(batch.columns, arrival.columns)
    for ours, theirs in zip(_filled(batch.cache), _filled(arrival.cache), strict=True):
        width = _held_columns(ours, columns)
        ours.keys = torch.cat([_widened(ours.keys, width), _widened(theirs.keys, width)])
        ours.values = torch.cat([_widened(ours.values, width), _widened(theirs.values, width)])
        _count(ours, columns)
    attended = [pad(lane.is_real, (columns - lane.columns, 0)) for lane in (batch, arrival)]
    batch.hold(torch.cat(attended))


def keep(batch: CacheLane, rows: Sequence[int]) -> None:
    """Keep these rows, in this order, and no more columns than the longest of them needs."""
    is_real = batch.is_real
    chosen = torch.tensor(rows, device=is_real.device)
    attended = is_real.index_select(0, chosen)
    columns = int(attended.sum(-1).max())
    for layer in _filled(batch.cache):
        width = _held_columns(layer, columns)
        layer.keys = layer.keys.index_select(0, chosen)[..., -width:, :].contiguous()
        layer.values = layer.values.index_select(0, chosen)[..., -width:, :].contiguous()
        _count(layer, columns)
    batch.hold(attended[:, -columns:])


def fill(lane: CacheLane, rows: int, columns: int) -> None:
    """Copy the first row's oldest token until the cache holds this many rows and columns."""
    for layer in _filled(lane.cache):
        copies = (rows, 1, _held_columns(layer, columns), 1)
        layer.keys = layer.keys[:1, :, :1].repeat(copies)
        layer.values = layer.values[:1, :, :1].repeat(copies)
        _count(layer, columns)
    lane.attended, lane.rows, lane.columns = None, rows, columns


def align_right(prompt: CacheLane) -> None:
    """Move the rows of a prompt that was padded on the right, so that each ends in the last column.

    Args:
        prompt: All its layers hold every column, whatever their windows.
    """
    lengths = prompt.is_real.sum(-1, keepdim=True)
    positions = torch.arange(prompt.columns, device=lengths.device) - (prompt.columns - lengths)
    source = positions.clamp(min=0)[:, None, :, None]  # [row, head, kv, size]
    for layer in _filled(prompt.cache):
        window = getattr(layer, "sliding_window", None)
        width = prompt.columns if window is None else min(prompt.columns, window - 1)
        layer.keys = _moved(layer.keys, source, width)
        layer.values = _moved(layer.values, source, width)
    prompt.hold(positions >= 0)


@contextmanager
def whole_windows(cache: Cache, columns: int) -> Generator[None]:
    """Make windowed layers keep this many columns meanwhile."""
    had = [(layer, getattr(layer, "sliding_window", None)) for layer in _layers(cache)]
    windowed = [(layer, window) for layer, window in had if window is not None]
    for layer, window in windowed:
        layer.sliding_window = max(window, columns + 1)
    try:
        yield
    finally:
        for layer, window in windowed:
            layer.sliding_window = window


def _layers(cache: Cache) -> Iterator[Any]:
    """Yield the layers, each of a kind whose rows can be moved."""
    for layer in cache.layers:
        if type(layer) not in ROW_LAYERS:
            msg = f"rows cannot be moved in a {type(layer).__name__}; use a static batch"
            raise BackendError(msg)
        yield layer


def _filled(cache: Cache) -> Iterator[Any]:
    """Yield the layers that hold something; some families share one between layers."""
    return (layer for layer in _layers(cache) if layer.is_initialized)


def _held_columns(layer: DynamicLayer, columns: int) -> int:
    """Return how many of this many columns a layer holds."""
    if isinstance(layer, DynamicSlidingWindowLayer):
        return min(columns, layer.sliding_window - 1)
    return columns


def _count(layer: DynamicLayer, columns: int) -> None:
    if isinstance(layer, DynamicSlidingWindowLayer):
        layer.cumulative_length = columns


def _widened(stored: torch.Tensor, columns: int) -> torch.Tensor:
    """Return [row, head, kv, size] padded on the left to this many columns."""
    return pad(stored, (0, 0, columns - stored.shape[-2], 0))


def _moved(stored: torch.Tensor, source: torch.Tensor, width: int) -> torch.Tensor:
    """Return the last ``width`` columns of a tensor whose columns were taken from ``source``."""
    heads, size = stored.shape[1], stored.shape[-1]
    index = source[..., -width:, :].expand(-1, heads, -1, size)
    return stored.gather(-2, index)
