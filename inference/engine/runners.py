"""How a policy's moves are carried out on a backend: one runner for each policy.

``block`` admits who arrives and returns what is fed, in no step time; ``forward`` feeds it, and
moving rows is part of the step. The static runner pads the prompts of a batch to one length and
feeds them together. The continuous runner feeds each prompt alone, into a cache of its own, whose
row then joins the batch's.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from inference.engine.backend_protocol import RowBackend
from inference.engine.batch import Batch, TokenBlock, decode_block
from inference.engine.cache_rows import CacheLane
from inference.engine.caches import together
from inference.engine.scheduler import Prefill, Step
from inference.records.errors import InputError
from inference.records.options import CacheKind, Padding, Policy
from inference.records.run import Request
from inference.records.steps import CacheState, Phase


class StaticRunner:
    """Feeds rows that begin together and stay until all have ended, in one cache."""

    def __init__(
        self,
        backend: RowBackend,
        batch: Batch,
        cache: CacheKind,
        padding: Padding,
        context_tokens: int | None,
    ) -> None:
        self._backend = backend
        self._batch = batch
        self._kind = cache
        self._padding = padding
        self._context_tokens = context_tokens

    def check(self, requests: Sequence[Request], chunk_tokens: int | None) -> None:
        """Raise unless prompts of these lengths can be fed together.

        Raises:
            InputError: The model, the chunks or the kind of cache do not allow it.
        """
        lengths = [len(request.prompt_ids) for request in requests]
        if self._padding is Padding.RIGHT and len(set(lengths)) > 1:
            if chunk_tokens is not None or self._kind is not CacheKind.DYNAMIC:
                msg = "prompts padded on the right are fed at once, into a dynamic cache; pad on "
                msg += "the left, or leave the chunks and the kind of cache as they are"
                raise InputError(msg)
            self._backend.check_right_padding()
        self._backend.check_prompts(lengths, chunk_tokens)

    def block(self, move: Step) -> TokenBlock:
        """Return what is fed; a batch that begins starts the cache anew."""
        batch = self._batch
        if not isinstance(move, Prefill):
            return decode_block(batch.rows)
        if move.admitted:
            batch.retire()
            batch.admit(move.admitted)
            requests = [row.request for row in batch.arriving]
            self._backend.start(self._kind, columns_needed(requests, self._context_tokens))
        return batch.prompt_block(move.end, self._padding)

    def forward(self, block: TokenBlock) -> Tensor:
        """Feed a block and return [row, vocab]."""
        return self._backend.forward(block.ids, block.padding)

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return what the cache holds, given the real tokens of each stored row."""
        return self._backend.cache_state(row_tokens)


class ContinuousRunner:
    """Feeds rows that come and go: each prompt apart, the others' cache as it is meanwhile."""

    def __init__(self, backend: RowBackend, batch: Batch, cache: CacheKind) -> None:
        self._backend = backend
        self._batch = batch
        self._kind = cache
        self._arrival: CacheLane | None = None  # of the prompt being fed

    def check(self, requests: Sequence[Request], chunk_tokens: int | None) -> None:
        """Raise unless rows can join and leave, and empty the cache.

        Raises:
            InputError: The model, the chunks or the kind of cache do not allow it.
        """
        if self._kind is not CacheKind.DYNAMIC:
            msg = f"rows cannot come and go in a {self._kind} cache; choose the "
            msg += f"{CacheKind.DYNAMIC} one, or the {Policy.STATIC} policy"
            raise InputError(msg)
        self._backend.check_rows()
        self._backend.start()
        for request in requests:
            self._backend.check_prompts([len(request.prompt_ids)], chunk_tokens)

    def block(self, move: Step) -> TokenBlock:
        """Admit who arrives and return what is fed."""
        batch = self._batch
        if not isinstance(move, Prefill):
            return decode_block(batch.live)
        if move.admitted:
            batch.admit(move.admitted)
        return batch.prompt_block(move.end)

    def forward(self, block: TokenBlock) -> Tensor:
        """Feed the batch, or one prompt apart from it that joins once it is fed whole."""
        self._backend.keep_rows(self._batch.retire())
        if block.phase is Phase.DECODE:
            return self._backend.forward(block.ids)
        if self._arrival is None:
            self._arrival = self._backend.new_lane()
        logits = self._backend.forward(block.ids, lane=self._arrival)
        if block.selects:
            self._backend.join(self._arrival)
            self._arrival = None
        return logits

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return what both caches hold, given the real tokens of each stored row."""
        if self._arrival is None:
            return self._backend.cache_state(row_tokens)
        rows = len(self._batch.rows)
        arrival = self._backend.cache_state(row_tokens[rows:], self._arrival)
        return together(self._backend.cache_state(row_tokens[:rows]), arrival) if rows else arrival


Runner = StaticRunner | ContinuousRunner


def columns_needed(requests: Sequence[Request], context_tokens: int | None) -> int:
    """Return the most columns a batch of these can come to store.

    Args:
        requests: At least one.
        context_tokens: Most tokens the model can hold; None when it names no limit.
    """
    lengths = [len(request.prompt_ids) for request in requests]
    new = max(request.max_new_tokens for request in requests) - 1
    if context_tokens is not None:
        new = min(new, max(0, context_tokens - min(lengths)))
    return max(lengths) + new
