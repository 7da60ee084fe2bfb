"""Decode steps that are prepared once for each shape and then repeated, over one static cache.

A step in these modes reads its tokens, positions and padding from buffers that stay where they are,
and stores keys and values at an index that the device itself counts, so nothing of it depends on
Python. One is prepared for each bucket, a number of rows with room for some columns. Preparing
belongs to no run and no step time. The backend decides, step by step, whether to use it: a step
that is captured or timed in parts is computed operation by operation on the same cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from subprocess import SubprocessError
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel

from inference.engine.caches import build_cache, cache_obstacle, is_counted_on_device, set_columns
from inference.engine.graph_capture import recorder_for
from inference.engine.step_capture import Recorder, Work, mode_obstacle
from inference.models.memory_errors import is_out_of_memory
from inference.records.errors import first_line
from inference.records.options import CacheKind, DecodeMode

# Source: our choice. Attention reads all the room, so it is rounded up by little; runs of about the
# same length share a bucket.
BUCKET_COLUMNS = 256
MOST_BUCKETS = 4
# What a forward pass that cannot be prepared raises; torch's compiler errors are RuntimeErrors,
# those of the compilers that it calls are not.
PREPARE_ERRORS = (
    SubprocessError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    OSError,
)

RecorderFor = Callable[[DecodeMode, torch.device], Recorder]
Obstacle = Callable[[DecodeMode, torch.device], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A shape that a step is prepared for."""

    mode: DecodeMode
    rows: int
    columns: int


def bucket_for(mode: DecodeMode, rows: int, columns: int) -> Bucket:
    """Return the bucket with room for this many columns."""
    rounded = -(-columns // BUCKET_COLUMNS) * BUCKET_COLUMNS
    return Bucket(mode=mode, rows=rows, columns=rounded)


class PreparedStep:
    """One decode step over buffers of its own.

    Attributes:
        bucket: What it is for.
        cache: The static cache that it reads and writes.
    """

    def __init__(
        self, model: PreTrainedModel, bucket: Bucket, cache_argument: str, recorder: Recorder
    ) -> None:
        """Lay the buffers out and prepare the step.

        Raises:
            RuntimeError: It cannot be prepared; other errors come from the model's own code.
        """
        self.bucket = bucket
        self.cache: Cache = build_cache(model, CacheKind.STATIC, bucket.columns)
        device = model.device
        self._ids = torch.zeros((bucket.rows, 1), dtype=torch.long, device=device)
        self._positions = torch.zeros_like(self._ids)
        # [row, column], 1 for real; columns to come are hidden by causality. A row by itself has no
        # padding.
        size = (bucket.rows, bucket.columns)
        self._mask = torch.ones(size, dtype=torch.long, device=device) if bucket.rows > 1 else None
        work = self._work(model, cache_argument)
        work()  # lays the cache's tensors out
        if not is_counted_on_device(self.cache):
            msg = "its layers do not all keep the whole context, so the host must count for them"
            raise RuntimeError(msg)
        self._again: Work = recorder.record(work, self._rewind)
        self.begin()

    def begin(self) -> Cache:
        """Forget what is stored; return the cache for a run."""
        self.cache.reset()
        if self._mask is not None:
            self._mask.fill_(1)
        return self.cache

    def has_room(self, columns: int | None) -> bool:
        """Tell whether each row can hold this many tokens."""
        return columns is not None and columns <= self.bucket.columns

    def step(self, fed: Tensor, arguments: dict[str, Any]) -> Tensor:
        """Feed one token a row; return [row, vocab], which the next step may overwrite.

        Args:
            fed: [row, 1].
            arguments: The forward's own, of which positions and padding are used.
        """
        self._ids.copy_(fed)
        if "position_ids" in arguments:
            self._positions.copy_(arguments["position_ids"])
        mask: Tensor | None = arguments.get("attention_mask")
        if mask is not None and self._mask is not None:
            self._mask[:, : mask.shape[1]].copy_(mask)
        return self._again()

    def _work(self, model: PreTrainedModel, cache_argument: str) -> Work:
        arguments: dict[str, Any] = {
            "input_ids": self._ids,
            "position_ids": self._positions,
            cache_argument: self.cache,
            "use_cache": True,
        }
        if self._mask is not None:
            arguments["attention_mask"] = self._mask

        def work() -> Tensor:
            return model(**arguments).logits[:, -1, :]

        return work

    def _rewind(self) -> None:
        set_columns(self.cache, 0)


class StepStore:
    """The prepared steps of one model, the few used last."""

    def __init__(
        self,
        model: PreTrainedModel,
        cache_argument: str,
        *,
        make: RecorderFor = recorder_for,
        obstacle: Obstacle = mode_obstacle,
    ) -> None:
        self._model = model
        self._cache_argument = cache_argument
        self._make = make
        self._obstacle = obstacle
        self._kept: dict[Bucket, PreparedStep] = {}

    @torch.inference_mode()
    def prepare(self, mode: DecodeMode, rows: int, columns: int) -> PreparedStep | str:
        """Return a step with room for this many columns, kept or prepared; or why there is none."""
        reason = self._why_not(mode)
        if reason:
            return reason
        bucket = bucket_for(mode, rows, columns)
        kept = self._kept.pop(bucket, None)
        if kept is None:
            while len(self._kept) >= MOST_BUCKETS:
                del self._kept[next(iter(self._kept))]  # its memory goes before the new one comes
            try:
                kept = self._made(bucket)
            except PREPARE_ERRORS as error:
                return f"the step could not be prepared ({first_line(error)})"
        self._kept[bucket] = kept
        return kept

    def clear(self) -> bool:
        """Let all prepared steps go; False when there are none."""
        had_some = bool(self._kept)
        self._kept.clear()
        return had_some

    def _made(self, bucket: Bucket) -> PreparedStep:
        """Prepare a step, if need be with the memory of those kept."""
        recorder = self._make(bucket.mode, self._model.device)
        try:
            return PreparedStep(self._model, bucket, self._cache_argument, recorder)
        except RuntimeError as error:
            if not (is_out_of_memory(error) and self.clear()):
                raise
        return PreparedStep(self._model, bucket, self._cache_argument, recorder)

    def _why_not(self, mode: DecodeMode) -> str:
        reason = self._obstacle(mode, self._model.device)
        if not reason and (static := cache_obstacle(self._model, CacheKind.STATIC)):
            reason = f"it needs a static cache: {static}"
        if not reason and len({weight.device for weight in self._model.parameters()}) > 1:
            reason = "the model is spread over several devices"
        return reason
