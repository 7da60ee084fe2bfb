"""The model and its cache: the only file that calls transformers' forward or feeds a cache.

A backend feeds token ids and returns the logits of each row's last position; it knows nothing of
text, clocks or sampling. Rows of unequal length are padded on the left, so that the last column is
the newest token of every row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from inference.engine.attention_capture import Probe
from inference.engine.attention_cells import Span
from inference.engine.batch import RowPadding
from inference.engine.cache_rows import CacheLane, align_right, rows_obstacle, whole_windows
from inference.engine.caches import build_cache, cache_state, tokens_seen
from inference.engine.cuda_graphs import PreparedStep, StepStore
from inference.engine.expert_kernels import ExpertKernels
from inference.engine.finite_masks import FiniteMasks
from inference.models.family_limits import (
    STATES_ONLY,
    causal_obstacle,
    chunk_obstacle,
    layer_kinds,
    padding_obstacle,
)
from inference.models.memory_errors import is_out_of_memory
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """The latest forward pass.

    Attributes:
        first_row: Rows of the batch before those it fed.
        attended: [row, kv], True for real tokens; None when all are.
        fed_columns: Columns fed, padding included.
        columns: Columns stored after it.
        is_moved: The columns were moved afterwards, away from where attention met them.
    """

    first_row: int
    rows: int
    attended: torch.Tensor | None
    fed_columns: int
    columns: int
    is_moved: bool


class TorchBackend:
    """Runs a transformers causal language model with a cache of its own.

    Attributes:
        decode: How the latest forward pass was launched.
        is_watched: Tells whether the model's modules are hooked, so that each step has to run
            through them.
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
        self._batch: CacheLane | None = None
        self._passes = 0
        self._latest: _Pass | None = None
        self._max_tokens: int | None = None
        self._probe = Probe(model)
        self._experts = ExpertKernels(model)
        self._steps = StepStore(model, self._cache_argument)
        self._prepared: PreparedStep | None = None

    @property
    def batch(self) -> CacheLane:
        """The batch's cache.

        Raises:
            BackendError: Nothing was started.
        """
        if self._batch is None:
            msg = "nothing was started; call start() before the first forward"
            raise BackendError(msg)
        return self._batch

    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> str:
        """Get ready, before a run, to launch its decode steps this way.

        Args:
            mode: Used in all runs from here on, where it can be; other steps are eager.
            rows: Rows of the batch.
            columns: Most tokens that each row holds, padding included.

        Returns:
            Why it cannot be used and steps are eager; an empty string when it can.
        """
        self._batch = self._prepared = None  # the old tensors go before the new ones come
        if mode is DecodeMode.EAGER:
            return ""
        self._experts.use(is_decode=True)
        made = self._steps.prepare(mode, rows, columns)
        if isinstance(made, str):
            return made
        self._prepared = made
        return ""

    def release_prepared(self) -> bool:
        """Give the memory of prepared steps back; False when there are none."""
        self._batch = self._prepared = None
        return self._steps.clear()

    @torch.inference_mode()
    def start(self, kind: CacheKind = CacheKind.DYNAMIC, max_tokens: int | None = None) -> None:
        """Forget everything stored and get ready for another batch.

        Args:
            kind: How keys and values are stored.
            max_tokens: Most tokens that each row holds, padding included; None when unknown.

        Raises:
            InputError: The model cannot have a cache of this kind.
        """
        self._probe.forget()
        self._batch = None  # the old tensors go before the new ones come
        ready = self._prepared
        if ready is not None and kind is CacheKind.STATIC and ready.has_room(max_tokens):
            cache = ready.begin()
        else:
            cache = build_cache(self._model, kind, max_tokens)
        self._batch = CacheLane(cache=cache)
        self._max_tokens = max_tokens
        self._passes = 0
        self._latest = None

    def check_prompts(self, lengths: Sequence[int], chunk_tokens: int | None) -> None:
        """Raise unless prompts of these lengths can be fed together, in chunks of this size if any.

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

    @property
    def chunk_obstacle(self) -> str:
        """Why tokens that are known cannot be fed in blocks; empty when they can."""
        return chunk_obstacle(self._model)

    def check_right_padding(self) -> None:
        """Raise unless prompts may be padded on the right.

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

    @torch.inference_mode()
    def forward(
        self,
        ids: Sequence[Sequence[int]],
        padding: RowPadding | None = None,
        lane: CacheLane | None = None,
    ) -> torch.Tensor:
        """Feed one block of tokens and return the logits of each row's last real position.

        Args:
            ids: [row, query], padded to one length.
            padding: Where rows are padded; None when every token is real. On the right only in
                the first block of a batch, whose rows are moved afterwards to end in one column.
            lane: The cache it goes to; None for the batch's.

        Returns:
            [row, vocab].

        Raises:
            InputError: The model cannot be fed prompts padded on the right.
            BackendError: The model failed, or its cache did not grow by the tokens fed.
            OutOfMemoryError: The device has too little memory for the step.
        """
        is_right = padding is not None and padding.is_right
        if is_right:
            self.check_right_padding()
        first_row = 0 if lane is None else self.batch.rows
        lane = self.batch if lane is None else lane
        fed = torch.tensor(ids, device=self._model.device)  # [row, query]
        rows, width = fed.shape
        self._fit_rows(lane, rows)
        lane.attended = _attended(lane, fed, padding)
        arguments = self._arguments(lane, fed, padding)
        with whole_windows(lane.cache, width) if is_right else nullcontext():
            logits = self._logits_or_error(lane, fed, arguments)
            lane.rows, lane.columns = rows, lane.columns + width
            _check_growth(lane)
        self._latest = _Pass(
            first_row=first_row,
            rows=rows,
            attended=lane.attended,
            fed_columns=width,
            columns=lane.columns,
            is_moved=is_right,
        )
        self._passes += 1
        if is_right:
            align_right(lane)
        return logits

    def cache_state(self, row_tokens: Sequence[int], lane: CacheLane | None = None) -> CacheState:
        """Return what a cache holds, read off its own tensors.

        Args:
            row_tokens: Real tokens stored for each row; 0 for one that has ended.
            lane: The cache; None for the batch's.
        """
        return cache_state((lane or self.batch).cache, row_tokens)

    def capture(self, choice: AttentionChoice | None) -> None:
        """Capture this layer's attention from the next forward on; None to stop.

        Raises:
            InputError: There is no such layer or head.
        """
        self._probe.capture(choice)

    @torch.inference_mode()
    def attention(self, *, is_prompt: bool) -> AttentionMap | None:
        """Return what the chosen layer attended to in the latest forward; None when off.

        Args:
            is_prompt: The forward fed the prompt or a chunk of it.
        """
        choice, latest = self._probe.choice, self._latest
        if choice is None or latest is None:
            return None
        try:
            # A map of columns that were moved since must not be kept for recall().
            captured = self._probe.take(
                self._spans(latest), is_prompt=is_prompt and not latest.is_moved
            )
        except RuntimeError as error:  # torch's, out of memory included: a map is not the run
            reason = f"the weights could not be formed: {first_line(error)}"
            return AttentionMap(choice=choice, step_index=self._passes - 1, reason=reason)
        if captured is None or not latest.is_moved:
            return captured
        reason = (
            "prompts padded on the right are moved after their step; pad on the left to capture"
        )
        return AttentionMap(choice=choice, step_index=captured.step_index, reason=reason)

    @torch.inference_mode()
    def attention_in_parts(self, parts: Sequence[int]) -> Iterator[AttentionMap]:
        """Yield what the chosen layer attended to in the latest forward, as if fed in these parts.

        Args:
            parts: Queries of each map, in order; together those of the forward.
        """
        latest = self._latest
        if latest is None:
            return
        try:
            yield from self._probe.take_parts(self._spans(latest), parts)
        except RuntimeError as error:  # as in ``attention``
            msg = f"the weights could not be formed: {first_line(error)}"
            raise BackendError(msg) from error

    @torch.inference_mode()
    def recall(self, query: int | None = None) -> tuple[AttentionMap, ...]:
        """Return the prompt's maps for the present choice, one a forward.

        Args:
            query: Position of one query, given exactly; None for all, binned where large.
        """
        return self._probe.recall(query)

    def _logits_or_error(
        self, lane: CacheLane, fed: torch.Tensor, arguments: dict[str, Any]
    ) -> torch.Tensor:
        """Return [row, vocab], or raise what went wrong as an error of ours."""
        try:
            return self._logits(lane, fed, arguments)
        except (MemoryError, *MODEL_ERRORS) as error:
            if is_out_of_memory(error):
                raise OutOfMemoryError(_memory_sentence(fed)) from error
            msg = f"{type(self._model).__name__} failed on this step ({first_line(error)}); try "
            msg += "another dtype or kind of cache, or choose another model"
            raise BackendError(msg) from error

    def _logits(
        self, lane: CacheLane, fed: torch.Tensor, arguments: dict[str, Any]
    ) -> torch.Tensor:
        """Return [row, vocab] of the last column, by the prepared step where it can be used."""
        ready = self._prepared
        if ready is not None and self._is_repeatable(lane, fed, ready):
            self.decode = ready.bucket.mode
            return ready.step(fed, arguments)
        self.decode = DecodeMode.EAGER
        self._experts.use(is_decode=lane.columns > 0 and fed.shape[1] == 1)
        is_padded = lane.attended is not None
        is_wide = self._model.dtype == torch.float64
        with FiniteMasks() if is_padded and is_wide else nullcontext():
            return self._model(input_ids=fed, **arguments).logits[:, -1, :]

    def _is_repeatable(self, lane: CacheLane, fed: torch.Tensor, ready: PreparedStep) -> bool:
        """Tell whether this is a decode step on the prepared cache that nothing captures."""
        is_step = lane.columns > 0 and fed.shape[1] == 1 and lane.cache is ready.cache
        return is_step and self._probe.choice is None and not self.is_watched()

    def _fit_rows(self, lane: CacheLane, rows: int) -> None:
        """Take another cache for a batch of another size than the one prepared for."""
        ready = self._prepared
        if lane.columns or ready is None or lane.cache is not ready.cache:
            return
        if rows != ready.bucket.rows:
            lane.cache = build_cache(self._model, CacheKind.STATIC, self._max_tokens)

    def _spans(self, latest: _Pass) -> list[Span | None]:
        """Return where each row's tokens are; None for a row that the pass fed none."""
        attended = None if latest.attended is None else latest.attended.cpu().numpy()
        width = latest.fed_columns
        spans: list[Span | None] = [None] * latest.first_row
        for row in range(latest.rows):
            is_real = None if attended is None else attended[row]
            fed = width if is_real is None else int(is_real[-width:].sum())
            span = Span(
                slot=row,
                fed_columns=width,
                columns=latest.columns,
                query_tokens=fed,
                step_index=self._passes - 1,
                is_real=is_real,
            )
            spans.append(span if fed else None)
        return spans

    def _arguments(
        self, lane: CacheLane, fed: torch.Tensor, padding: RowPadding | None
    ) -> dict[str, Any]:
        """Return the forward's keyword arguments for this block."""
        arguments: dict[str, Any] = {self._cache_argument: lane.cache, "use_cache": True}
        if padding is not None and padding.is_right:
            lengths = torch.tensor(padding.lengths, device=fed.device)
            arguments["logits_to_keep"] = (lengths - 1)[:, None]  # [row, position]
        elif "logits_to_keep" in self._accepted:
            arguments["logits_to_keep"] = 1
        if lane.attended is not None:
            real = lane.attended[:, -fed.shape[1] :] if self._is_recurrent else lane.attended
            arguments["attention_mask"] = real.long()
        if "position_ids" in self._accepted:  # some models count from 0 in each block by themselves
            arguments["position_ids"] = _positions(lane, fed)
        return arguments


def _positions(lane: CacheLane, fed: torch.Tensor) -> torch.Tensor:
    """Return the position of each token fed among its row's own, [row, query]."""
    rows, width = fed.shape
    if lane.attended is None:
        positions = torch.arange(lane.columns, lane.columns + width, device=fed.device)
        return positions.expand(rows, width)
    # Padding does not count as a position.
    return (lane.attended.long().cumsum(-1)[:, -width:] - 1).clamp(min=0)


def _attended(
    lane: CacheLane, fed: torch.Tensor, padding: RowPadding | None
) -> torch.Tensor | None:
    """Return which columns [row, kv] are real with this block added; None while all are."""
    before = lane.attended
    if before is None and padding is None:
        return None
    rows, width = fed.shape
    if before is None:
        before = torch.ones((rows, lane.columns), dtype=torch.bool, device=fed.device)
    block = torch.ones((rows, width), dtype=torch.bool, device=fed.device)
    for row, gap in enumerate(padding.gaps(width) if padding is not None else ()):
        block[row, gap] = False
    return torch.cat([before, block], dim=1)


def _check_growth(lane: CacheLane) -> None:
    """Raise BackendError unless the layers kept what they were given."""
    for index, layer in enumerate(lane.cache.layers):
        stored = tokens_seen(layer)
        if stored is not None and stored != lane.columns:
            msg = (
                f"layer {index}'s cache counts {stored} tokens after {lane.columns} were fed; "
                "this model does not use the cache it is given"
            )
            raise BackendError(msg)


def _memory_sentence(fed: torch.Tensor) -> str:
    rows, width = fed.shape
    return (
        f"out of memory while feeding {width} tokens in {rows} row(s); "
        "use a shorter prompt, fewer rows or a smaller dtype"
    )
