"""The stretches of host time in which steps of one phase followed each other closely.

Pure: events in, moments out. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference.records.steps import Phase, StepEvent


def phase_spans(
    events: Iterable[StepEvent], phase: Phase, longest_gap_s: float
) -> Iterator[tuple[float, float]]:
    """Yield start and end of each stretch; a longer gap, or a step of another phase, ends one."""
    start_s = end_s = None
    for event in events:
        is_next = end_s is not None and event.started_s - end_s <= longest_gap_s
        if start_s is not None and end_s is not None and (event.phase is not phase or not is_next):
            yield start_s, end_s
            start_s = end_s = None
        if event.phase is phase:
            start_s = event.started_s if start_s is None else start_s
            end_s = event.started_s + event.duration_s
    if start_s is not None and end_s is not None:
        yield start_s, end_s
