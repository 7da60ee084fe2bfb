"""Which attention is captured, the weights that were, and how a run file keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """What to capture in every step.

    Attributes:
        layer: 0 for the first.
        head: A query head; None for the mean over all of them, or with ``is_all_heads`` for each.
        is_all_heads: Each head by itself.
        slot: The row of the batch; of a run that is over, the request's number.
    """

    layer: int
    head: int | None = None
    is_all_heads: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionMap:
    """The weights that one layer gave to stored tokens in one step; each query's sum to 1.

    A cell stands for ``query_bin`` x ``kv_bin`` weights and holds the largest of them; with bins of
    1 every weight is exact. Positions count the row's own tokens from 0, padding left out. Arrays
    are read-only; a weight that is not a number stays NaN.

    Attributes:
        heads: The query head of each plane; empty when the one plane is the mean over all heads.
        query_start: Position of the first query.
        query_tokens: Queries covered.
        kv_start: Position of the first key; above 0 where a window has dropped those before.
        kv_tokens: Keys covered.
        weights: [plane, query cell, kv cell]; None where they could not be captured.
        first_token: [plane, query cell], the largest weight on the sequence's first token; None
            when no key of the map is that token.
        rest_of_first_cell: [plane, query cell], the largest weight of the first kv cell without the
            first token; None likewise.
        first_output_query: Position of the query whose output chose the first output token: the
            prompt's last; None when it is not in this map.
        reason: Why there are no weights, or what is wrong with them; empty when all is well.
    """

    choice: AttentionChoice
    step_index: int = 0
    heads: tuple[int, ...] = ()
    query_start: int = 0
    query_tokens: int = 0
    kv_start: int = 0
    kv_tokens: int = 0
    query_bin: int = 1
    kv_bin: int = 1
    weights: NDArray[np.float16 | np.float32] | None = None
    first_token: NDArray[np.float16 | np.float32] | None = None
    rest_of_first_cell: NDArray[np.float16 | np.float32] | None = None
    first_output_query: int | None = None
    reason: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.weights, self.first_token, self.rest_of_first_cell)
        return sum(array.nbytes for array in arrays if array is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """What a packed map is of: ``AttentionMap``, field for field, without its arrays.

    Attributes:
        has_weights: False where none could be captured; ``reason`` says why.
    """

    step_index: int = 0
    heads: tuple[int, ...] = ()
    query_start: int = 0
    query_tokens: int = 0
    kv_start: int = 0
    kv_tokens: int = 0
    query_bin: int = 1
    kv_bin: int = 1
    first_output_query: int | None = None
    reason: str = ""
    has_weights: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedAttention:
    """The maps of one choice as a run file keeps them; runs/packed_attention.py packs them.

    Attributes:
        maps: In the order of their steps.
        body: Base64 of the maps' weights: half-precision numbers, compressed.
        note: What a reader must know of how they were captured; empty when it was during the run.
    """

    choice: AttentionChoice
    maps: tuple[MapLayout, ...]
    body: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTokens:
    """One request of a run that is over, to be fed again.

    Attributes:
        prompt_blocks: Tokens of the prompt that each of the run's steps fed.
        ids: All tokens that were fed: the prompt's, then those selected.
        output_ids: Those selected; the last of them was fed to nobody.
        logprobs: Of each token selected, in nats; None where it is not to be compared.
    """

    prompt_blocks: tuple[int, ...]
    ids: tuple[int, ...]
    output_ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt that were fed."""
        return sum(self.prompt_blocks)
