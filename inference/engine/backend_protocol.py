"""What the engine needs of a backend: one forward pass at a time, a cache, and captured attention.

:class:`inference.engine.backend.TorchBackend` says what each part does; tests have a scripted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from inference.engine.batch import RowPadding
from inference.engine.cache_rows import CacheLane
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import CacheKind, DecodeMode
from inference.records.steps import CacheState


class Backend(Protocol):
    """What a static batch needs of a model.

    Attributes:
        decode: How the latest forward pass was launched.
    """

    decode: DecodeMode

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Get ready to launch a run's decode steps this way; return why not."""
        ...

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything stored and get ready for another batch."""
        ...

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Raise InputError unless prompts of these lengths can be fed together."""
        ...

    def check_right_padding(self) -> None:
        """Raise InputError unless prompts may be padded on the right."""
        ...

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        padding: RowPadding | None = None,
        lane: CacheLane | None = None,
    ) -> torch.Tensor:
        """Feed one block of tokens and return [row, vocab] of each row's last real position."""
        ...

    def cache_state(self, row_tokens: Sequence[int], lane: CacheLane | None = None) -> CacheState:
        """Return what a cache holds for rows with this many real tokens each."""
        ...

    def capture(self, choice: AttentionChoice | None) -> None:
        """Capture this layer's attention from the next forward on; None to stop."""
        ...

    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return what the chosen layer attended to in the latest forward; None when off."""
        ...

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the present choice, one a forward."""
        ...


class RowBackend(Backend, Protocol):
    """What a continuous batch needs besides."""

    def check_rows(self) -> None:
        """Raise InputError unless rows can join and leave."""
        ...

    def new_lane(self) -> CacheLane:
        """Return an empty cache beside the batch's."""
        ...

    def join(self, arrival: CacheLane) -> None:
        """Put a lane's rows behind those of the batch."""
        ...

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows of the batch, in this order; none at all empties it."""
        ...
