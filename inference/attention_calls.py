"""What one layer's attention was given, or gave, in one forward pass, held by reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """What a kernel that keeps its weights to itself was given.

    Attributes:
        query: [row, head, query, head_dim]; in a decode step of grouped heads also
            [row, kv_head, head of the group, head_dim].
        key: [row, kv_head, kv, head_dim].
        mask: [row or 1, head or 1, query, kv], True where allowed, or to be added; None for none.
        is_causal: Allow each query the keys up to its own place.
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

    def weights(self, slot: int, heads: Sequence[int], queries: Tensor) -> Tensor:
        """Return [head, query, kv], the softmax over the keys of each query."""
        exact = torch.float64 if self.query.dtype == torch.float64 else torch.float32
        group = self.heads // self.key.shape[1]
        picked = torch.as_tensor(heads, device=self.query.device)
        query = self.query[slot][picked][:, queries].to(exact)  # [head, query, head_dim]
        key = self.key[slot][picked // group].to(exact)  # [head, kv, head_dim]
        scale = self.query.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = query @ key.transpose(-1, -2) * scale
        if self.is_causal:
            places = torch.arange(self.kv_columns, device=scores.device)
            scores = scores.masked_fill(places[None, :] > queries[:, None], -inf)
        if self.mask is not None:
            plane = self.mask[slot if self.mask.shape[0] > 1 else 0]
            plane = plane[picked if plane.shape[0] > 1 else slice(0, 1)]
            plane = plane[:, queries if plane.shape[1] > 1 else slice(0, 1)]
            is_bool = plane.dtype == torch.bool
            scores = scores.masked_fill(~plane, -inf) if is_bool else scores + plane.to(exact)
        return scores.softmax(dim=-1)


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

    def weights(self, slot: int, heads: Sequence[int], queries: Tensor) -> Tensor:
        """Return [head, query, kv] as the model formed them."""
        picked = torch.as_tensor(heads, device=self.all_weights.device)
        chosen = self.all_weights[slot][picked][:, queries, : self.kv_columns]
        return chosen if chosen.dtype == torch.float64 else chosen.float()


Seen = KernelCall | SeenWeights
