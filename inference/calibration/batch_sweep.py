"""Measures decode steps of the model held by batch and context, on a cache filled in advance.

The cache is filled with copies of one token's keys and values: what they hold costs no time, where
they lie does, and a long context then needs no prefill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from statistics import median

from transformers import PreTrainedModel

from inference.calibration.ceilings import ShouldStop
from inference.calibration.timings import Stopwatch, Timing, quiet_timings
from inference.counting.costs import kv_stored_bytes
from inference.engine.free_memory import free_cache_bytes
from inference.engine.row_backend import TorchRowBackend
from inference.engine.scheduler import MAX_ROWS
from inference.figures.disturbance import MOST_REPETITIONS
from inference.figures.sweeps import impossible_batches
from inference.models.loading import LoadedModel
from inference.records.batches import BatchSweep, BatchTiming, SkippedPoint
from inference.records.errors import BackendError, InputError, OutOfMemoryError

WARM_UPS = 2  # the first call with a new number of rows may compile or choose kernels
REPEATS = 3

FreeBytes = Callable[[PreTrainedModel], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSweepPlan:
    """Every batch at every context, the cheap ones first."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of batch and context, context by context."""
        return ((batch, context) for context in self.contexts for batch in self.batches)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.batches) * len(self.contexts)


def check_sweep(batches: Sequence[int], contexts: Sequence[int]) -> BatchSweepPlan:
    """Return what is to be measured, sorted, each once.

    Raises:
        InputError: A size is out of range.
    """
    if not batches or not contexts:
        msg = "nothing is chosen to measure; give at least one batch and one context"
        raise InputError(msg)
    least = WARM_UPS + REPEATS + 1
    if min(batches) < 1 or max(batches) > MAX_ROWS:
        msg = f"a batch of {min(batches) if min(batches) < 1 else max(batches)} rows; give 1 to "
        msg += f"{MAX_ROWS}"
        raise InputError(msg)
    if min(contexts) < least:
        msg = f"a context of {min(contexts)} tokens is too short to time; give {least} or more"
        raise InputError(msg)
    return BatchSweepPlan(
        batches=tuple(sorted(set(batches))), contexts=tuple(sorted(set(contexts)))
    )


def sweep_batches(
    loaded: LoadedModel,
    stopwatch: Stopwatch,
    plan: BatchSweepPlan,
    should_stop: ShouldStop = lambda: False,
    free_bytes: FreeBytes = free_cache_bytes,
) -> Iterator[BatchSweep]:
    """Yield the sweep so far after every point, and at its end; a stop ends it where it is.

    A point that does not fit is left out with its reason, and so are larger batches.

    Raises:
        InputError: The model's cache cannot be filled in advance.
    """
    backend = TorchRowBackend(loaded.model)
    sweep = BatchSweep(
        model_id=loaded.model_id,
        shape=loaded.shape,
        device=loaded.device,
        measured_at=datetime.now(UTC),
        points=(),
    )
    yield sweep
    for batch, context in plan:
        if should_stop():
            return
        try:
            _check_fits(loaded, batch, context, free_bytes)
            timing = _timing(backend, stopwatch, batch, context)
            before = _corrected(sweep.points, timing, partial(_timing, backend, stopwatch))
        except (OutOfMemoryError, BackendError) as error:
            left = SkippedPoint(batch=batch, context_tokens=context, reason=str(error))
            sweep = replace(sweep, left_out=(*sweep.left_out, left))
        else:
            sweep = replace(sweep, points=(*before, timing))
        yield sweep
    backend.start()  # the memory is the next run's
    yield replace(sweep, is_whole=True)


def _check_fits(loaded: LoadedModel, batch: int, context: int, free_bytes: FreeBytes) -> None:
    limit = loaded.context_limit
    if limit is not None and context > limit:
        msg = f"the model takes {limit:,} tokens, not {context:,}"
        raise BackendError(msg)
    needed = batch * kv_stored_bytes(loaded.shape, context)
    free = free_bytes(loaded.model)
    if free is not None and needed > free:
        msg = f"{batch} rows of {context:,} tokens need {needed / 2**30:.2f} GiB of keys and values"
        msg += f" and {free / 2**30:.2f} GiB are free"
        raise OutOfMemoryError(msg)


def _corrected(
    points: tuple[BatchTiming, ...],
    newest: BatchTiming,
    measured: Callable[[int, int], BatchTiming],
) -> tuple[BatchTiming, ...]:
    """Return the points before the newest, those that it shows to be impossible measured again."""
    context = newest.context_tokens
    for _ in range(MOST_REPETITIONS):
        wrong = impossible_batches((*points, newest), context)
        if not wrong:
            break
        points = tuple(
            min(one, measured(one.batch, context), key=_median_of)
            if one.context_tokens == context and one.batch in wrong
            else one
            for one in points
        )
    return points


def _median_of(point: BatchTiming) -> float:
    """Return what two readings of a point are told by: other programs only make it larger."""
    return point.median_s


def _timing(
    backend: TorchRowBackend, stopwatch: Stopwatch, batch: int, context: int
) -> BatchTiming:
    """Time the steps that lead up to the context, the last one at it."""
    ids = [[1]] * batch

    def measure(_missing: int) -> list[Timing]:
        backend.fill(batch, context - WARM_UPS - REPEATS)
        steps = range(WARM_UPS + REPEATS)
        # Reading the tokens waits for the device, as a step does.
        timings = [stopwatch.time(lambda: backend.forward(ids).argmax(dim=-1).cpu()) for _ in steps]
        return timings[WARM_UPS:]

    kept = quiet_timings(measure, REPEATS)
    timed = kept.seconds
    return BatchTiming(
        batch=batch,
        context_tokens=context,
        best_s=min(timed),
        median_s=median(timed),
        worst_s=max(timed),
        repeats=len(timed),
        used_bytes=backend.cache_state([context] * batch).used_bytes,
        is_disturbed=kept.is_disturbed,
    )
