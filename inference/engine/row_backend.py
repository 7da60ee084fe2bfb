"""A backend whose batch requests can join and leave, and whose prompts may be padded on the right.

Two caches are kept apart: the batch's, and that of the one request whose prompt is being fed. Once
the prompt is fed whole, its row joins the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel

from inference.engine.backend import Backend, TorchBackend
from inference.engine.cache_rows import (
    Stored,
    align_right,
    filled_with,
    held_windows,
    hold_everything,
    hold_windows,
    join,
    keep,
    rows_obstacle,
)
from inference.engine.caches import build_cache, cache_state
from inference.records.attention import AttentionMap
from inference.records.errors import BackendError, InputError
from inference.records.options import CacheKind
from inference.records.steps import CacheState


class Lane(StrEnum):
    """Which of the two caches a forward goes to."""

    BATCH = "batch"
    ARRIVAL = "arrival"


class RowBackend(Backend, Protocol):
    """What the engine needs of a model whose batch changes while it runs."""

    def check_rows(self) -> None:
        """Pass when rows can join and leave."""
        ...

    def use(self, lane: Lane) -> None:
        """Feed this cache from the next forward on; the other one is kept as it is."""
        ...

    def join(self) -> None:
        """Put the row whose prompt was fed behind those of the batch, and use the batch."""
        ...

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows of the batch, in this order; none at all empties it."""
        ...

    def check_right_padding(self) -> None:
        """Pass when prompts may be padded on the right."""
        ...

    def forward_right_padded(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int]
    ) -> torch.Tensor:
        """Feed prompts that are padded on the right, as the first block of a batch.

        Returns:
            [row, vocab], the logits of each row's last real position.
        """
        ...


class TorchRowBackend(TorchBackend):
    """Runs a transformers model whose rows come and go."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self._lane = Lane.BATCH
        self._other: Stored | None = None
        self._was_right = False  # the latest forward's columns were moved
        self._right: torch.Tensor | None = None  # [row], lengths of right-padded prompts

    def check_rows(self) -> None:
        """Pass when rows can join and leave.

        Raises:
            InputError: The model keeps something that cannot be lined up.
        """
        obstacle = rows_obstacle(self._model)
        if obstacle:
            msg = f"{self._model.config.model_type} cannot run a continuous batch: {obstacle}; use "
            msg += "the static policy"
            raise InputError(msg)

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything stored, in both caches.

        Raises:
            InputError: The model cannot have a cache of this kind.
        """
        self._lane, self._other = Lane.BATCH, None
        super().start(kind, max_tokens)

    def use(self, lane: Lane) -> None:
        """Feed this cache from the next forward on; the other one is kept as it is."""
        if lane is self._lane:
            return
        waiting = self._stored()
        self._take(self._other)
        self._other, self._lane = waiting, lane

    def join(self) -> None:
        """Put the row whose prompt was fed behind those of the batch, and use the batch.

        Raises:
            BackendError: No prompt was fed by itself.
        """
        arrival = self._stored() if self._lane is Lane.ARRIVAL else None
        if arrival is None:
            msg = "no prompt was fed apart from the batch; use() the other cache first"
            raise BackendError(msg)
        batch, self._other, self._lane = self._other, None, Lane.BATCH
        self._take(arrival if batch is None else join(batch, arrival))

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows of the batch, in this order; none at all empties it."""
        batch = self._stored()
        if batch is None or list(rows) == list(range(batch.rows)):
            return
        self._take(keep(batch, rows) if rows else None)

    def forward(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Feed one block of tokens and return the logits of each row's last position.

        Raises:
            BackendError, OutOfMemoryError: As the base class.
        """
        self._was_right = False
        return super().forward(ids, lengths)

    @torch.inference_mode()
    def forward_right_padded(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int]
    ) -> torch.Tensor:
        """Feed prompts that are padded on the right, as the first block of a batch.

        Raises:
            InputError: The model's cache cannot be lined up afterwards.
            BackendError, OutOfMemoryError: As ``forward``.
        """
        self.check_right_padding()
        self._right = torch.tensor(lengths, device=self._model.device)
        windows = hold_everything(self._held(), len(ids[0]))
        try:
            logits = super().forward(ids)
            self._was_right = True
        finally:
            self._right = None
            hold_windows(self._held(), windows)
        if (prompt := self._stored()) is not None:
            self._take(align_right(prompt, held_windows(prompt.cache)))
        return logits

    def check_right_padding(self) -> None:
        """Pass when prompts may be padded on the right.

        Raises:
            InputError: The model cannot be fed such a block.
        """
        obstacle = rows_obstacle(self._model)
        if "logits_to_keep" not in self._accepted:
            obstacle = obstacle or "it gives the scores of the last column only"
        if obstacle:
            msg = f"{self._model.config.model_type} cannot take prompts padded on the right: "
            msg += f"{obstacle}; pad on the left"
            raise InputError(msg)

    def fill(self, rows: int, columns: int) -> None:
        """Start a batch of so many rows that hold so many tokens already, copies of one.

        Raises:
            InputError: The model's cache cannot be filled this way.
        """
        self.check_rows()
        self.start()
        self.forward([[1]])
        if (stored := self._stored()) is not None:
            self._take(filled_with(stored, rows, columns))

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return what both caches hold.

        Args:
            row_tokens: Real tokens of each row of the batch, then of the one that arrives.
        """
        other = self._other
        if other is None:
            return super().cache_state(row_tokens)
        is_apart = self._lane is Lane.ARRIVAL
        split = other.rows if is_apart else self._rows
        batch, arrival = row_tokens[:split], row_tokens[split:]
        ours, theirs = (arrival, batch) if is_apart else (batch, arrival)
        return together(super().cache_state(ours), cache_state(other.cache, theirs))

    @torch.inference_mode()
    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return what the chosen layer attended to in the latest forward; None when not looking."""
        # What was seen has the columns before they were moved, so it is not kept for recall().
        seen = super().attention(is_prompt=is_prompt and not self._was_right)
        if seen is None or not self._was_right:
            return seen
        reason = "prompts padded on the right are moved after their step; pad on the left to look"
        return AttentionMap(choice=seen.choice, step_index=seen.step_index, reason=reason)

    def _arguments(self, fed: torch.Tensor, lengths: Sequence[int] | None) -> dict[str, Any]:
        """Return the forward's keyword arguments; right-padded rows end in different columns."""
        arguments = super()._arguments(fed, lengths)
        if self._right is not None:
            arguments["logits_to_keep"] = (self._right - 1)[:, None]  # [row, position]
        return arguments

    def _extended(self, fed: torch.Tensor, lengths: Sequence[int] | None) -> torch.Tensor | None:
        """Return which columns [row, kv] are real with this block added; None while all are."""
        if self._right is None:
            return super()._extended(fed, lengths)
        return torch.arange(fed.shape[1], device=fed.device) < self._right[:, None]

    def _stored(self) -> Stored | None:
        """Return what the cache in use holds; None while it is empty."""
        cache = self._held()
        if not self._columns:
            return None
        attended = self._attended
        if attended is None:
            size = (self._rows, self._columns)
            attended = torch.ones(size, dtype=torch.bool, device=self._model.device)
        return Stored(cache=cache, attended=attended, rows=self._rows, columns=self._columns)

    def _take(self, stored: Stored | None) -> None:
        """Use what was stored; None for nothing."""
        if stored is None:
            self._cache = build_cache(self._model, CacheKind.DYNAMIC, None)
            self._attended = None
            self._rows = self._columns = 0
            return
        self._cache, self._rows, self._columns = stored.cache, stored.rows, stored.columns
        self._attended = None if bool(stored.attended.all()) else stored.attended


def together(one: CacheState, other: CacheState) -> CacheState:
    """Return what two caches of one model hold."""

    def added(ours: Sequence[int], theirs: Sequence[int]) -> tuple[int, ...]:
        return tuple(a + b for a, b in zip(ours, theirs, strict=True))

    pairs = zip(one.tokens_per_layer, other.tokens_per_layer, strict=True)
    return CacheState(
        tokens_per_layer=tuple(max(pair) for pair in pairs),
        used_bytes=one.used_bytes + other.used_bytes,
        allocated_bytes=one.allocated_bytes + other.allocated_bytes,
        bytes_per_layer=added(one.bytes_per_layer, other.bytes_per_layer),
        state_bytes=one.state_bytes + other.state_bytes,
        state_bytes_per_layer=added(one.state_bytes_per_layer, other.state_bytes_per_layer),
    )
