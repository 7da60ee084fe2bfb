"""The model and its cache: the only file that calls transformers' forward or feeds a cache.

A backend feeds token ids and returns the logits of each row's last position; it knows nothing of
text, clocks or sampling. Rows of unequal length are padded on the left, so that the last column is
the newest token of every row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from transformers import Cache, PreTrainedModel

from inference.engine.attention_capture import Probe
from inference.engine.attention_cells import Span
from inference.engine.caches import build_cache, cache_state, tokens_seen
from inference.engine.cuda_graphs import PreparedStep, StepStore
from inference.engine.finite_masks import FiniteMasks
from inference.models.family_limits import (
    STATES_ONLY,
    causal_obstacle,
    chunk_obstacle,
    layer_kinds,
    padding_obstacle,
)
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.errors import (
    BackendError,
    InputError,
    OutOfMemoryError,
    UnsupportedModelError,
    first_line,
)
from inference.records.options import CacheKind, DecodeMode
from inference.records.steps import CacheState

# transformers 5.24 calls the argument `cache`; 5.17 calls it `past_key_values` and swallows an
# unknown `cache` without a word, so the name is read off the model's own signature.
CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")
# What model code raises when a family and a setting do not go together.
MODEL_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError)


class Backend(Protocol):
    """What the engine needs of a model.

    Attributes:
        decode: How the latest forward pass was handed over to the device.
    """

    decode: DecodeMode

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Get ready, before a run, to hand its decode steps over this way.

        Args:
            mode: Used in all runs from here on, where it can be; others are eager.
            rows: Rows of the batch.
            columns: Most tokens that each row will hold, padding included.

        Returns:
            Why it cannot be used and steps will be eager; an empty string when it can.
        """
        ...

    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything stored and get ready for another batch.

        Args:
            kind: How keys and values are to be stored.
            max_tokens: Tokens that each row will hold at most, padding included; None when unknown.
        """
        ...

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Pass when prompts of these lengths can be fed together, in chunks of this size if any."""
        ...

    def forward(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Feed one block of tokens and return the logits of each row's last position.

        Args:
            ids: [row, query], left-padded to one length.
            lengths: Real tokens of each row in this block, the rest of the row on its left is
                padding; None when all are real.

        Returns:
            [row, vocab].
        """
        ...

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return what the cache holds.

        Args:
            row_tokens: Real tokens stored for each live row.
        """
        ...

    def capture(self, choice: AttentionChoice | None) -> None:
        """Look at this layer's attention from the next forward on; None to stop looking."""
        ...

    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return what the chosen layer attended to in the latest forward; None when not looking.

        Args:
            is_prompt: The forward fed the prompt or a chunk of it.
        """
        ...

    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the present choice, one a forward; of one query exactly."""
        ...


class TorchBackend:
    """Runs a transformers causal language model with a cache of its own.

    Attributes:
        decode: How the latest forward pass was handed over to the device.
        is_watched: Tells whether somebody looks into the model's modules, so that each step has to
            run through them.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.decode = DecodeMode.EAGER
        self.is_watched: Callable[[], bool] = lambda: False
        obstacle = causal_obstacle(model)
        if obstacle:
            msg = f"{type(model).__name__} {obstacle}; choose a model that generates text one token"
            msg += " after another"
            raise UnsupportedModelError(msg)
        self._model = model
        accepted = inspect.signature(model.forward).parameters
        names = [name for name in CACHE_ARGUMENTS if name in accepted]
        if not names:
            msg = (
                f"{type(model).__name__} takes no key/value cache, so it cannot decode step by step"
            )
            raise BackendError(msg)
        self._cache_argument = names[0]
        self._accepted = frozenset(accepted)
        # Without attention layers the mask is of the block fed, not of all that is stored.
        self._is_recurrent = layer_kinds(model) <= STATES_ONLY
        self._cache: Cache | None = None
        self._attended: torch.Tensor | None = None  # [row, kv], True for real; None when all are
        self._rows = self._columns = self._fed_columns = self._passes = 0
        self._max_tokens: int | None = None
        self._probe = Probe(model)
        self._steps = StepStore(model, self._cache_argument)
        self._prepared: PreparedStep | None = None

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Get ready, before a run, to hand its decode steps over this way; return why not."""
        self._cache = self._prepared = None  # the old tensors go before the new ones come
        if mode is DecodeMode.EAGER:
            return ""
        made = self._steps.prepare(mode, rows, columns)
        if isinstance(made, str):
            return made
        self._prepared = made
        return ""

    @torch.inference_mode()
    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything stored and get ready for another batch.

        Raises:
            InputError: The model cannot have a cache of this kind.
        """
        self._probe.forget()
        self._cache = None  # the old tensors go before the new ones come
        ready = self._prepared
        if ready is not None and kind is CacheKind.STATIC and ready.has_room(max_tokens):
            self._cache = ready.begin()
        else:
            self._cache = build_cache(self._model, kind, max_tokens)
        self._max_tokens = max_tokens
        self._attended = None
        self._rows = self._columns = self._fed_columns = self._passes = 0

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Pass when prompts of these lengths can be fed together, in chunks of this size if any.

        Raises:
            InputError: The library would compute something else for this model, without a word.
        """
        model_type = self._model.config.model_type
        is_chunked = chunk_tokens is not None and chunk_tokens < max(lengths)
        if is_chunked and (obstacle := chunk_obstacle(self._model)):
            msg = f"{model_type} cannot be fed in chunks: {obstacle}; feed the prompt at once"
            raise InputError(msg)
        if len(set(lengths)) > 1 and (obstacle := padding_obstacle(self._model)):
            msg = f"{model_type} cannot run prompts of unequal length as one batch: {obstacle}; "
            msg += "run them one after another"
            raise InputError(msg)

    @torch.inference_mode()
    def forward(
        self, ids: Sequence[Sequence[int]], lengths: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Feed one block of tokens and return the logits of each row's last position.

        Raises:
            BackendError: The model failed, or its cache did not grow by the tokens fed.
            OutOfMemoryError: The device has too little memory for the step.
        """
        fed = torch.tensor(ids, device=self._model.device)  # [row, query]
        self._fit_rows(len(ids))
        arguments = self._arguments(fed, lengths)
        try:
            logits = self._logits(fed, arguments)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise OutOfMemoryError(_memory_sentence(fed)) from error
        except MODEL_ERRORS as error:
            if "allocate memory" in str(error):  # the CPU allocator raises a plain RuntimeError
                raise OutOfMemoryError(_memory_sentence(fed)) from error
            msg = f"{type(self._model).__name__} failed on this step ({first_line(error)}); try "
            msg += "another dtype or kind of cache, or choose another model"
            raise BackendError(msg) from error
        self._rows, self._fed_columns = fed.shape
        self._columns += fed.shape[1]
        self._passes += 1
        self._check_growth()
        return logits

    def cache_state(self, row_tokens: Sequence[int]) -> CacheState:
        """Return what the cache holds, read off its own tensors."""
        return cache_state(self._held(), row_tokens)

    def capture(self, choice: AttentionChoice | None) -> None:
        """Look at this layer's attention from the next forward on; None to stop looking.

        Raises:
            InputError: There is no such layer or head.
        """
        self._probe.capture(choice)

    @torch.inference_mode()
    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return what the chosen layer attended to in the latest forward; None when not looking."""
        choice = self._probe.choice
        if choice is None:
            return None
        try:
            return self._probe.take(self._spans(), is_prompt=is_prompt)
        except RuntimeError as error:  # torch's, out of memory included: a picture is not the run
            reason = f"the weights could not be formed: {first_line(error)}"
            return AttentionMap(choice=choice, step_index=self._passes - 1, reason=reason)

    @torch.inference_mode()
    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the present choice, one a forward; of one query exactly."""
        return self._probe.recall(query)

    def _logits(self, fed: torch.Tensor, arguments: dict[str, Any]) -> torch.Tensor:
        """Return [row, vocab] of the last column, by the prepared step where it can be used."""
        ready = self._prepared
        if ready is not None and self._is_repeatable(fed, ready):
            self.decode = ready.bucket.mode
            return ready.step(fed, arguments)
        self.decode = DecodeMode.EAGER
        is_padded = self._attended is not None
        is_wide = self._model.dtype == torch.float64
        with FiniteMasks() if is_padded and is_wide else nullcontext():
            return self._model(input_ids=fed, **arguments).logits[:, -1, :]

    def _is_repeatable(self, fed: torch.Tensor, ready: PreparedStep) -> bool:
        """Tell whether this is a decode step on the prepared cache that nobody looks into."""
        is_step = self._columns > 0 and fed.shape[1] == 1 and self._cache is ready.cache
        return is_step and self._probe.choice is None and not self.is_watched()

    def _fit_rows(self, rows: int) -> None:
        """Take another cache for a batch of another size than the one prepared for."""
        ready = self._prepared
        if self._columns or ready is None or self._cache is not ready.cache:
            return
        if rows != ready.bucket.rows:
            self._cache = build_cache(self._model, CacheKind.STATIC, self._max_tokens)

    def _held(self) -> Cache:
        if self._cache is None:
            msg = "nothing was started; call start() before the first forward"
            raise BackendError(msg)
        return self._cache

    def _spans(self) -> list[Span | None]:
        """Return where each row's tokens are; None for a row that the latest forward fed none."""
        attended = None if self._attended is None else self._attended.cpu().numpy()
        width = self._fed_columns
        spans: list[Span | None] = []
        for slot in range(self._rows):
            is_real = None if attended is None else attended[slot]
            fed = width if is_real is None else int(is_real[-width:].sum())
            span = Span(
                slot=slot,
                fed_columns=width,
                columns=self._columns,
                query_tokens=fed,
                step_index=self._passes - 1,
                is_real=is_real,
            )
            spans.append(span if fed else None)
        return spans

    def _arguments(self, fed: torch.Tensor, lengths: Sequence[int] | None) -> dict[str, Any]:
        """Return the forward's keyword arguments for this block and remember what is real."""
        arguments: dict[str, Any] = {self._cache_argument: self._held(), "use_cache": True}
        if "logits_to_keep" in self._accepted:
            arguments["logits_to_keep"] = 1
        self._attended = self._extended(fed, lengths)
        if self._attended is not None:
            real = self._attended[:, -fed.shape[1] :] if self._is_recurrent else self._attended
            arguments["attention_mask"] = real.long()
        if "position_ids" in self._accepted:  # some models count from 0 in each block by themselves
            arguments["position_ids"] = self._positions(fed)
        return arguments

    def _positions(self, fed: torch.Tensor) -> torch.Tensor:
        """Return the position of each token fed among its row's own, [row, query]."""
        rows, width = fed.shape
        if self._attended is None:
            places = torch.arange(self._columns, self._columns + width, device=fed.device)
            return places.expand(rows, width)
        # Padding does not count as a position.
        return (self._attended.long().cumsum(-1)[:, -width:] - 1).clamp(min=0)

    def _extended(self, fed: torch.Tensor, lengths: Sequence[int] | None) -> torch.Tensor | None:
        """Return which columns [row, kv] are real with this block added; None while all are."""
        rows, width = fed.shape
        is_padded = lengths is not None and any(length < width for length in lengths)
        if self._attended is None and not is_padded:
            return None
        before = self._attended
        if before is None:
            before = torch.ones((rows, self._columns), dtype=torch.bool, device=fed.device)
        block = torch.ones((rows, width), dtype=torch.bool, device=fed.device)
        for row, length in enumerate(lengths or ()):
            block[row, : width - length] = False
        return torch.cat([before, block], dim=1)

    def _check_growth(self) -> None:
        """Raise BackendError unless the layers kept what they were given."""
        for index, layer in enumerate(self._held().layers):
            seen = tokens_seen(layer)
            if seen is not None and seen != self._columns:
                msg = (
                    f"layer {index}'s cache counts {seen} tokens after {self._columns} were fed; "
                    "this model does not use the cache it is given"
                )
                raise BackendError(msg)


def _memory_sentence(fed: torch.Tensor) -> str:
    rows, width = fed.shape
    return (
        f"out of memory while feeding {width} tokens in {rows} row(s); "
        "use a shorter prompt, fewer rows or a smaller dtype"
    )
