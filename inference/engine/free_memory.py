"""How much memory a device has left for keys and values, before a run begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from inference.counting.what_if import as_stored
from inference.engine.scheduler import check_rows_fit, largest_contexts
from inference.models.host_memory import free_host_bytes
from inference.models.loading import LoadedModel
from inference.models.placement import devices_of, unused_gpu_bytes
from inference.records.options import BatchPlan, CacheKind
from inference.records.run import Request

# Source: our own choice. Activations, the copy a growing cache makes of one layer, other programs.
SHARE_FOR_CACHE = 0.9


def free_cache_bytes(model: PreTrainedModel) -> int | None:
    """Return the bytes that keys and values may take; None where a device does not say.

    Each device holds those of its own layers, so the one that is full first decides.
    """
    held = devices_of(model)
    layers = sum(held.values())
    if len(held) == 1 or not layers:
        free_bytes = _free_bytes(model.device)
        return None if free_bytes is None else int(free_bytes * SHARE_FOR_CACHE)
    found: list[float] = []
    for device, count in held.items():
        free_bytes = _free_bytes(device)
        if free_bytes is None:
            return None
        if count:
            found.append(free_bytes * layers / count)
    return int(min(found) * SHARE_FOR_CACHE)


def check_memory(
    loaded: LoadedModel,
    requests: Sequence[Request],
    plan: BatchPlan,
    free_bytes: Callable[[PreTrainedModel], int | None] = free_cache_bytes,
    cache: CacheKind = CacheKind.DYNAMIC,
) -> None:
    """Raise unless the largest rows that can run together have room for their keys and values.

    Raises:
        InputError: They do not fit; the sentence says how many do.
    """
    contexts = largest_contexts(requests, plan, loaded.context_limit)
    check_rows_fit(as_stored(loaded.shape, cache), contexts, free_bytes(loaded.model))


def _free_bytes(device: torch.device) -> int | None:
    if device.type == "cuda":
        return unused_gpu_bytes(device.index or 0)
    return free_host_bytes() if device.type == "cpu" else None
