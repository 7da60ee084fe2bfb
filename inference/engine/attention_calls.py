"""What one layer's attention was given, or gave, in one forward pass, held by reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# From queries, counted among those of the pass, to [head, query, kv].
Reader = Callable[[NDArray[np.int64]], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """What a kernel that keeps its weights to itself was given.

    Attributes:
        query: [row, head, query, head_dim]; in a decode step of grouped heads also
            [row, kv_head, head of the group, head_dim].
        key: [row, kv_head, kv, head_dim].
        mask: [row or 1, head or 1, query, kv], True where allowed, or to be added; None for none.
        is_causal: Allow each query the keys up to its own position.
        scale: Of the product; None for 1 / sqrt(head_dim).
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float | None

    @property
    def nbytes(self) -> int:
        """Bytes kept alive by remembering it."""
        mask_bytes = 0 if self.mask is None else self.mask.nbytes
        return self.query.nbytes + self.key.nbytes + mask_bytes

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.query.device

    @property
    def kv_columns(self) -> int:
        """Keys given."""
        return self.key.shape[-2]

    def unpacked(self, fed_columns: int) -> KernelCall:
        """Return the call with one plane of the query for each head."""
        row, heads, queries, size = self.query.shape
        if queries == fed_columns:
            return self
        mask = self.mask
        if mask is not None and mask.shape[1] != 1:
            mask = mask.reshape(mask.shape[0], heads * queries, 1, mask.shape[-1])
        return replace(self, query=self.query.reshape(row, heads * queries, 1, size), mask=mask)

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.query.shape[1]

    def reader(self, slot: int, head: int | None) -> Reader:
        """Return a function from queries to [head, query, kv], their softmax over the keys.

        Args:
            slot: The row.
            head: The one head to give; None for all.
        """
        exact = torch.float64 if self.query.dtype == torch.float64 else torch.float32
        kv_heads = self.key.shape[1]
        group = self.heads // kv_heads
        heads = slice(None) if head is None else slice(head, head + 1)
        shared = slice(None) if head is None else slice(head // group, head // group + 1)
        asked = self.query[slot, heads]  # [head, query, head_dim]
        key = self.key[slot, shared].to(exact)  # [kv_head, kv, head_dim]
        scale = self.query.shape[-1] ** -0.5 if self.scale is None else self.scale
        mask = self._mask_of(slot, heads)

        def read(queries: NDArray[np.int64]) -> Tensor:
            positions = torch.from_numpy(queries).to(asked.device)
            kv = int(queries[-1]) + 1 if self.is_causal else self.kv_columns  # the rest is masked
            query = asked[:, positions].to(exact)
            grouped = query.reshape(len(key), -1, query.shape[-1])  # [kv_head, group and query, ..]
            scores = (grouped @ key[:, :kv].transpose(-1, -2)).view(len(query), len(queries), kv)
            scores *= scale
            if self.is_causal:
                later = torch.arange(kv, device=scores.device) > positions[:, None]
                scores.masked_fill_(later, -inf)
            if mask is not None:
                plane = mask[:, positions] if mask.shape[1] > 1 else mask
                scores = _masked(scores, plane[..., :kv])
            weights = scores.softmax(dim=-1)
            return nn.functional.pad(weights, (0, self.kv_columns - kv))

        return read

    def _mask_of(self, slot: int, heads: slice) -> Tensor | None:
        """Return [head or 1, query or 1, kv], the mask of one row; None where there is none."""
        if self.mask is None:
            return None
        plane = self.mask[slot if self.mask.shape[0] > 1 else 0]
        return plane[heads] if plane.shape[0] > 1 else plane


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the scores with a mask that allows or adds put on them."""
    if mask.dtype == torch.bool:
        return scores.masked_fill_(~mask, -inf)
    return scores.add_(mask.to(scores.dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWeights:
    """Weights that the model formed itself.

    Attributes:
        all_weights: [row, head, query, kv], with a last column more where there is a sink.
        kv_tokens: Keys, as the values they were multiplied with say; None when that was not seen.
    """

    all_weights: Tensor
    kv_tokens: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes kept alive by remembering it."""
        return self.all_weights.nbytes

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.all_weights.device

    @property
    def kv_columns(self) -> int:
        """Keys that the weights are for."""
        return self.all_weights.shape[-1] if self.kv_tokens is None else self.kv_tokens

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.all_weights.shape[1]

    def times(self, values: object) -> SeenWeights:
        """Return the same with the number of keys, read off what the weights multiply."""
        if self.kv_tokens is not None or not isinstance(values, Tensor):
            return self
        keys = values.shape[-2]
        width = self.all_weights.shape[-1]
        return replace(self, kv_tokens=keys if keys in (width, width - 1) else width)

    def unpacked(self, _fed_columns: int) -> SeenWeights:
        """Return the same: here each head has a plane of its own."""
        return self

    def reader(self, slot: int, head: int | None) -> Reader:
        """Return a function from queries to [head, query, kv], as the model formed them.

        Args:
            slot: The row.
            head: The one head to give; None for all.
        """
        heads = slice(None) if head is None else slice(head, head + 1)
        formed = self.all_weights[slot, heads, :, : self.kv_columns]

        def read(queries: NDArray[np.int64]) -> Tensor:
            weights = formed[:, torch.from_numpy(queries).to(formed.device)]
            return weights if weights.dtype == torch.float64 else weights.float()

        return read


Seen = KernelCall | SeenWeights
