"""What a model would need at least on a device that is not here, and where its limit changes.

All of it is counted, whatever the roofs come from. No torch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from inference.counting.costs import kv_stored_bytes, step_cost
from inference.counting.roofline import bound_of, lower_bound_seconds
from inference.records.costs import Ceilings, StepCost
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.options import CacheKind
from inference.records.rooflines import Bound, WhatIf, Workload

LARGEST_SEARCHED = 1 << 20
QUANTISED_BYTES = 1  # of an element in a quantised cache, which stores 8-bit floats
# Of a layer: one float32 for its keys and one for its values.
# Source: transformers 5.24, cache_utils.Fp8QuantizedLayer._quantize.
SCALE_BYTES = 2 * 4


def what_if(
    shape: ModelShape,
    ceilings: Ceilings,
    workload: Workload,
    memory_bytes: int | None = None,
) -> WhatIf:
    """Return what this model would need at least on a device with these roofs.

    Args:
        shape: The model's sizes.
        ceilings: The device's roofs for the model's dtype.
        workload: Sequences, prompts and context.
        memory_bytes: The device's memory, where known.

    Raises:
        InputError: If a size is not above zero.
    """
    batch, context_tokens = workload.batch, workload.context_tokens
    prompt_tokens = workload.prompt_tokens
    check_positive(batch=batch, prompt_tokens=prompt_tokens, context_tokens=context_tokens)
    prefill = step_cost(shape, [(prompt_tokens, prompt_tokens)] * batch)
    decode = step_cost(shape, [(1, context_tokens)] * batch)
    itl_s = lower_bound_seconds(decode, ceilings)
    needed = memory_needed_bytes(shape, batch, context_tokens)
    return WhatIf(
        ceilings=ceilings,
        prefill=prefill,
        decode=decode,
        ttft_s=lower_bound_seconds(prefill, ceilings),
        itl_s=itl_s,
        sequence_tokens_per_s=1 / itl_s,
        batch_tokens_per_s=batch / itl_s,
        memory_needed_bytes=needed,
        fits=None if memory_bytes is None else needed <= memory_bytes,
        prefill_bound=bound_of(prefill, ceilings),
        decode_bound=bound_of(decode, ceilings),
        compute_bound_prompt_tokens=compute_bound_prompt_tokens(shape, ceilings),
        compute_bound_batch=compute_bound_batch(shape, ceilings, context_tokens),
        kv_overtakes_batch=kv_overtakes_batch(shape, context_tokens),
    )


def memory_needed_bytes(shape: ModelShape, batch: int, context_tokens: int) -> int:
    """Return the bytes of all weights and of every sequence's K/V; work space is not in it."""
    return shape.weight_bytes + batch * kv_stored_bytes(shape, context_tokens)


def compute_bound_prompt_tokens(shape: ModelShape, ceilings: Ceilings) -> int | None:
    """Return the shortest prompt whose prefill, alone in its step, is compute-bound."""
    return first_count(lambda tokens: _is_compute(shape, ceilings, [(tokens, tokens)]))


def compute_bound_batch(shape: ModelShape, ceilings: Ceilings, context_tokens: int) -> int | None:
    """Return the smallest batch whose decode step at this context is compute-bound.

    None is the usual answer at a long context: each sequence brings K/V of its own, so the
    intensity levels off below the ridge however large the batch.
    """
    return first_count(lambda batch: _is_compute_batch(shape, ceilings, batch, context_tokens))


def kv_overtakes_batch(shape: ModelShape, context_tokens: int) -> int | None:
    """Return the smallest batch whose decode step reads at least as many K/V bytes as weights."""
    return first_count(lambda batch: _kv_reaches_weights(shape, batch, context_tokens))


def first_count(holds: Callable[[int], bool], largest: int = LARGEST_SEARCHED) -> int | None:
    """Return the smallest count for which ``holds``, which must stay true for all larger ones.

    None where it is false up to ``largest``.
    """
    index = bisect_left(range(1, largest + 1), True, key=holds)  # noqa: FBT003  what is looked for
    return index + 1 if index < largest else None


def with_kv_bytes(shape: ModelShape, element_bytes: int) -> ModelShape:
    """Return the shape with each key and value element stored in ``element_bytes`` bytes."""
    check_positive(element_bytes=element_bytes)
    old = shape.kv_dtype_bytes
    per_token = shape.kv_bytes_per_token
    return replace(
        shape,
        kv_dtype_bytes=element_bytes,
        kv_bytes_per_token=None if per_token is None else per_token * element_bytes // old,
        kv_row_bytes_per_layer=tuple(
            size * element_bytes // old for size in shape.kv_row_bytes_per_layer
        ),
    )


def as_stored(shape: ModelShape, cache: CacheKind) -> ModelShape:
    """Return the shape with the keys and values as a cache of this kind stores them."""
    return with_kv_bytes(shape, QUANTISED_BYTES) if cache is CacheKind.QUANTISED else shape


def scale_bytes(cache: CacheKind) -> int:
    """Return the bytes that a layer of a cache of this kind keeps beside its keys and values."""
    return SCALE_BYTES if cache is CacheKind.QUANTISED else 0


def check_positive(**sizes: int) -> None:
    """Raise InputError naming the first size that is not above zero."""
    for name, value in sizes.items():
        if value <= 0:
            msg = f"{name.replace('_', ' ')} is {value}; it must be a whole number above zero"
            raise InputError(msg)


def _is_compute(shape: ModelShape, ceilings: Ceilings, rows: list[tuple[int, int]]) -> bool:
    return bound_of(step_cost(shape, rows), ceilings) is Bound.COMPUTE


def _is_compute_batch(
    shape: ModelShape, ceilings: Ceilings, batch: int, context_tokens: int
) -> bool:
    return bound_of(decode_cost(shape, batch, context_tokens), ceilings) is Bound.COMPUTE


def _kv_reaches_weights(shape: ModelShape, batch: int, context_tokens: int) -> bool:
    cost = decode_cost(shape, batch, context_tokens)
    return cost.kv_read_bytes >= cost.weight_bytes


def decode_cost(shape: ModelShape, batch: int, context_tokens: int) -> StepCost:
    """Return the cost of equal rows without listing them: K/V and attention go with the batch."""
    one = step_cost(shape, [(1, context_tokens)])
    linear = step_cost(shape, [(batch, batch)], logit_rows=batch)
    return replace(
        linear,
        attention_flops=batch * one.attention_flops,
        kv_read_bytes=batch * one.kv_read_bytes,
        kv_write_bytes=batch * one.kv_write_bytes,
        expansion_flops=batch * one.expansion_flops,
    )
