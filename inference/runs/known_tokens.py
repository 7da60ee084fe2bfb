"""The tokens of a run that is over, as they were fed. No torch."""

from __future__ import annotations

from inference.records.attention import KnownTokens
from inference.records.options import CacheKind
from inference.records.run import RunInfo, RunTrace
from inference.records.steps import Phase

RECAPTURED = "Computed after the run from its tokens."
UNQUANTISED = (
    "Computed after the run from its tokens with keys that are not quantised, so they differ a "
    "little from the weights during the run."
)


def known_tokens(trace: RunTrace, number: int) -> KnownTokens | None:
    """Return what was fed and selected for one request; None when nothing was.

    Args:
        trace: The run.
        number: The request's, in the run's list.
    """
    if not 0 <= number < len(trace.requests):
        return None
    request = trace.requests[number]
    rows = [
        (event.phase, row)
        for event in trace.events
        for row in event.rows
        if row.request_id == request.request_id
    ]
    blocks = tuple(row.query_tokens for phase, row in rows if phase is Phase.PREFILL)
    if not blocks:
        return None
    selected = [row for _, row in rows if row.token_id is not None]
    # A quantised cache gave later tokens other keys than those that are fed again.
    compared = 1 if trace.info.cache is CacheKind.QUANTISED else len(selected)
    ids = tuple(row.token_id for row in selected if row.token_id is not None)
    return KnownTokens(
        prompt_blocks=blocks,
        ids=(*request.prompt_ids[: sum(blocks)], *ids[:-1]),
        output_ids=ids,
        logprobs=tuple(row.logprob for row in selected[:compared]),
    )


def recapture_note(info: RunInfo) -> str:
    """Return what a reader must know of weights that were captured after a run."""
    return UNQUANTISED if info.cache is CacheKind.QUANTISED else RECAPTURED
