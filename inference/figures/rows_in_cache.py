"""Which rows the cache holds after a step: those fed in it, and those that wait meanwhile.

While a continuous batch is fed the prompt of a new request, the rows before it are in no step, but
their keys and values stay in the cache. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence

from inference.records.steps import Phase, RowStep, StepEvent


def rows_in_cache(events: Sequence[StepEvent], at: int = -1) -> tuple[RowStep, ...]:
    """Return the rows held after a step, each as it was last fed; the step's own come first.

    Rows that ended in an earlier step are left out: their tokens are dropped, or are padding.

    Args:
        events: The run's steps from its beginning.
        at: The step.
    """
    at = range(len(events))[at]
    rows = list(events[at].rows)
    met = {row.request_id for row in rows}
    # A decode step feeds every row but one whose prompt goes on in the step after it.
    while at > 0 and events[at].phase is Phase.PREFILL:
        at -= 1
        rows += [row for row in events[at].rows if row.request_id not in met and row.finish is None]
        met |= {row.request_id for row in events[at].rows}
    if at > 0:
        rows += [
            row
            for row in events[at - 1].rows
            if row.request_id not in met and _is_chunk(events[at - 1], row)
        ]
    return tuple(rows)


def _is_chunk(event: StepEvent, row: RowStep) -> bool:
    """Tell whether a step fed a part of the row's prompt, with more to come."""
    return event.phase is Phase.PREFILL and row.token_id is None and row.finish is None
