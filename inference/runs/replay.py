"""A recorded run as it stood at an earlier moment, and how long each of its steps is shown.

Pure: records in, records out; whoever plays a run brings the clock. No torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from inference.records.model import TokenPiece
from inference.records.run import Output, Request, RunTrace
from inference.records.status import RunState
from inference.records.steps import StepEvent

# Chosen: a run that was paused or stepped by hand has gaps of minutes between its steps; host work
# between two steps stays far below this, so a longer gap was waiting.
LONGEST_GAP_S = 0.5


def step_ends_s(events: Sequence[StepEvent]) -> tuple[float, ...]:
    """Return when each step is over at the run's own pace, counted from its first step.

    A step lasts for its step time and for the host time before it, of which at most
    ``LONGEST_GAP_S`` counts.
    """
    lasting = [event.duration_s for event in events]
    for index in range(1, len(events)):
        before = events[index - 1]
        gap_s = events[index].started_s - before.started_s - before.duration_s
        lasting[index] += min(max(gap_s, 0.0), LONGEST_GAP_S)
    return tuple(accumulate(lasting))


def steps_over(ends_s: Sequence[float], position_s: float) -> int:
    """Return how many steps are over at a position of the run's own pace."""
    return bisect_right(ends_s, position_s)


def run_until(trace: RunTrace, steps: int, state: RunState, message: str = "") -> RunTrace:
    """Return the run as it stood after its first ``steps`` steps; all of them give it whole."""
    if steps >= len(trace.events):
        return replace(trace, state=state, message=message)
    events = trace.events[:steps]
    until_s = events[-1].started_s + events[-1].duration_s if events else 0.0
    at_s = [sample.at_s for sample in trace.telemetry]
    return replace(
        trace,
        events=events,
        telemetry=trace.telemetry[: bisect_right(at_s, until_s)],
        outputs=outputs_of(trace.requests, events, trace.pieces),
        state=state,
        message=message,
    )


def outputs_of(
    requests: Iterable[Request], events: Iterable[StepEvent], pieces: Iterable[TokenPiece]
) -> tuple[Output, ...]:
    """Return what the steps put out for each request, spelt with the run's own pieces."""
    selected: dict[str, list[int]] = {request.request_id: [] for request in requests}
    for event in events:
        for row in event.rows:
            if row.token_id is not None and row.request_id in selected:
                selected[row.request_id].append(row.token_id)
    piece_of = {piece.token_id: piece for piece in pieces}
    return tuple(
        Output(request_id=request_id, token_ids=tuple(ids), text=_text(ids, piece_of))
        for request_id, ids in selected.items()
    )


def _text(ids: Iterable[int], piece_of: dict[int, TokenPiece]) -> str:
    pieces = (piece_of[token_id] for token_id in ids if token_id in piece_of)
    raw = b"".join(piece.raw for piece in pieces if not piece.is_special)
    return raw.decode("utf-8", errors="replace")
