"""Attention of runs that are over, captured anew on the model that made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inference.engine.backend import TorchBackend
from inference.engine.recapture import recapture
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import CacheKind
from inference.records.run import RunInfo, RunTrace
from inference.runs.known_tokens import known_tokens
from inference.runs.packed_attention import packed_together

RECAPTURED = "Computed after the run from its tokens."
UNQUANTISED = (
    "Computed after the run from its tokens, with keys that are not quantised: the run's own "
    "weights differ by what its 8-bit cache lost."
)


def recapture_note(info: RunInfo) -> str:
    """Return what a reader must know of weights that were captured after a run."""
    return UNQUANTISED if info.cache is CacheKind.QUANTISED else RECAPTURED


def with_attention(
    trace: RunTrace, backend: TorchBackend, choices: Sequence[AttentionChoice]
) -> RunTrace:
    """Return a finished run with what these layers attend to, for every request.

    Raises:
        InputError: There is no such layer or head.
        BackendError, OutOfMemoryError: The model failed.
    """
    note = recapture_note(trace.info)
    captures = (
        (choice, maps, note) for choice, maps in _recaptured(trace, backend, choices) if maps
    )
    return replace(trace, attention=packed_together(captures))


def _recaptured(
    trace: RunTrace, backend: TorchBackend, choices: Sequence[AttentionChoice]
) -> Iterator[tuple[AttentionChoice, tuple[AttentionMap, ...]]]:
    for choice in choices:
        for number in range(len(trace.requests)):
            known = known_tokens(trace, number)
            if known is None:
                continue
            of_request = replace(choice, slot=number)
            yield of_request, tuple(recapture(backend, known, of_request))
