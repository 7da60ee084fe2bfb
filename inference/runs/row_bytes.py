"""Each request's part of a cache that holds a whole batch. No torch.

The cache's tensors are measured as one, so a row has the part of their bytes that its stored tokens
have of all tokens stored. That is right for every kind of cache: what a token takes in a quantised
one is not in the model's shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from inference.counting.costs import kv_stored_bytes
from inference.records.model import ModelShape
from inference.records.run import RunTrace
from inference.records.steps import StepEvent


def kv_bytes_by_step(trace: RunTrace, request_id: str) -> Iterator[tuple[StepEvent, int]]:
    """Yield the steps that fed this request, each with its K/V bytes after it, in order."""
    stored: dict[str, int] = {}
    shape = trace.info.shape
    for event in trace.events:
        stored |= {row.request_id: row.context_tokens for row in event.rows}
        if any(row.request_id == request_id for row in event.rows):
            yield event, _part(event.cache.used_bytes, stored, request_id, shape)
        for row in event.rows:
            if row.finish is not None:  # its bytes are counted with this step for the last time
                stored.pop(row.request_id, None)


def kv_bytes_at_end(trace: RunTrace, request_id: str) -> int | None:
    """Return the request's K/V bytes after its last step; None where no step fed it."""
    return next((size for _, size in reversed([*kv_bytes_by_step(trace, request_id)])), None)


def _part(used_bytes: int, stored: dict[str, int], request_id: str, shape: ModelShape) -> int:
    """Return one request's part of the bytes; windowed layers keep their window of its tokens."""
    if len(stored) == 1:
        return used_bytes
    counted = {one: kv_stored_bytes(shape, tokens) for one, tokens in stored.items()}
    weights = counted if any(counted.values()) else stored
    return used_bytes * weights[request_id] // sum(weights.values())
