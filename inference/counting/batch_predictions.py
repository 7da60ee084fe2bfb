"""What a batch gains and where that ends, counted from a model's shape and two roofs. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from inference.counting.costs import kv_stored_bytes
from inference.counting.roofline import bound_of, lower_bound_seconds
from inference.counting.what_if import decode_cost, first_count, kv_overtakes_batch
from inference.records.batches import BatchLimits, BatchPrediction
from inference.records.costs import Ceilings
from inference.records.model import ModelShape

LARGEST_BATCH = 1 << 16


def predict_batches(
    shape: ModelShape, ceilings: Ceilings, batches: Sequence[int], contexts: Sequence[int]
) -> tuple[BatchPrediction, ...]:
    """Return what every batch needs at every context, by context and then by batch.

    Raises:
        InputError: A size is not above zero, or the shape cannot be counted.
    """
    return tuple(
        predict_batch(shape, ceilings, batch, context) for context in contexts for batch in batches
    )


def predict_batch(
    shape: ModelShape, ceilings: Ceilings, batch: int, context_tokens: int
) -> BatchPrediction:
    """Return what one decode step of this batch needs at least."""
    cost = decode_cost(shape, batch, context_tokens)
    return BatchPrediction(
        batch=batch,
        context_tokens=context_tokens,
        cost=cost,
        step_s=lower_bound_seconds(cost, ceilings),
        bound=bound_of(cost, ceilings),
    )


def batch_limits(
    shape: ModelShape, ceilings: Ceilings, context_tokens: int, memory_bytes: int | None = None
) -> BatchLimits:
    """Return where the benefit of a batch ends at one context.

    Args:
        shape: The model's sizes.
        ceilings: The device's roofs for its dtype.
        context_tokens: Tokens in each row's cache.
        memory_bytes: The device's memory, where known.
    """
    row_bytes = kv_stored_bytes(shape, context_tokens)
    room = None if memory_bytes is None else max(0, memory_bytes - shape.weight_bytes)
    return BatchLimits(
        context_tokens=context_tokens,
        kv_overtakes_batch=kv_overtakes_batch(shape, context_tokens),
        linear_compute_batch=linear_compute_batch(shape, ceilings),
        most_rows=None if room is None or not row_bytes else room // row_bytes,
    )


def linear_compute_batch(shape: ModelShape, ceilings: Ceilings) -> int | None:
    """Return the smallest batch whose linear operations are compute-bound in decode.

    Attention and K/V are left out; the context makes no difference. None where no batch up to
    65,536 is.
    """
    return first_count(lambda batch: is_linear_compute(shape, ceilings, batch), LARGEST_BATCH)


def is_linear_compute(shape: ModelShape, ceilings: Ceilings, batch: int) -> bool:
    """Tell whether a decode step's linear operations take longer to compute than to read."""
    cost = decode_cost(shape, batch, 1)
    return cost.linear_flops / cost.weight_bytes >= ceilings.ridge_flops_per_byte
