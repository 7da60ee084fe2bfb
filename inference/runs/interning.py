"""Equal values in a run's many events are kept once. No torch.

Each event arrives from the engine process with objects of its own, down to the same name of the
request and, for each layer of the cache, the same number again. What is shared here is frozen.
"""

from __future__ import annotations

from dataclasses import replace

from inference.records.steps import CacheState, Candidate, RowStep, StepEvent


class Interner:
    """Shares what one run's events have in common."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._size_bytes = 0
        self._layers: dict[str, tuple[int, ...]] = {}

    def shared(self, event: StepEvent) -> StepEvent:
        """Return an equal event that holds what earlier ones hold already."""
        return replace(
            event,
            rows=tuple(self._row(row) for row in event.rows),
            cache=self._cache(event.cache),
            waited_s=event.waited_s or 0.0,
        )

    def _row(self, row: RowStep) -> RowStep:
        return replace(
            row,
            request_id=self._texts.setdefault(row.request_id, row.request_id),
            candidates=tuple(_sharing(candidate, row) for candidate in row.candidates),
        )

    def _cache(self, cache: CacheState) -> CacheState:
        return replace(
            cache,
            allocated_bytes=self._size(cache.allocated_bytes),
            tokens_per_layer=self._same("tokens", cache.tokens_per_layer),
            bytes_per_layer=self._same("bytes", cache.bytes_per_layer),
            state_bytes_per_layer=self._same("states", cache.state_bytes_per_layer),
            used_bytes_per_layer=self._same("used", cache.used_bytes_per_layer),
        )

    def _size(self, size_bytes: int) -> int:
        """Return the number of the step before if it is equal."""
        if size_bytes != self._size_bytes:
            self._size_bytes = size_bytes
        return self._size_bytes

    def _same(self, name: str, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tuple of the step before if it is equal, else one of as few numbers."""
        before = self._layers.get(name)
        if before is not None and before == values:
            return before
        numbers = {value: value for value in values}
        self._layers[name] = tuple(numbers[value] for value in values)
        return self._layers[name]


def _sharing(candidate: Candidate, row: RowStep) -> Candidate:
    """Return the candidate, with the row's own numbers where it is the token that was selected."""
    is_selected = candidate.token_id == row.token_id and candidate.logprob == row.logprob
    if not is_selected or row.token_id is None or row.logprob is None:
        return candidate
    return replace(candidate, token_id=row.token_id, logprob=row.logprob)
