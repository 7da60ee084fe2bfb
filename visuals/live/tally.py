"""What the steps that one viewer has drawn come to, carried on from frame to frame.

A frame's figures are of all steps so far. Counted anew for every frame, those of 32 rows would take
longer with every step. No torch, no page.
"""

from __future__ import annotations

from inference.figures.latency import RunningLatency
from inference.records.run import RunTrace
from inference.records.steps import StepEvent
from visuals.charts.slots import SlotStep, Spans, Walk


class Tally:
    """The latencies and the slots of a run up to the newest step drawn.

    A viewer keeps one. Asked about another run, or about fewer steps than before, it begins anew,
    so that it always says what a fresh one would.

    Attributes:
        latency: Of all requests.
        spans: What the slots did; of runs of several requests only.
        newest: The batch in the newest step; None before it, and for a single request.
    """

    latency: RunningLatency
    spans: Spans
    newest: SlotStep | None

    def __init__(self) -> None:
        self._run_id = ""
        self._last: StepEvent | None = None
        self._taken = 0
        self._walk: Walk | None = None

    def take(self, trace: RunTrace, done: int) -> None:
        """Take all steps before ``done`` that were not taken yet."""
        if not self._goes_on(trace, done):
            self._begin(trace)
        for event in trace.events[self._taken : done]:
            self.latency.add(event)
            if self._walk is not None:
                self.newest = self._walk.step(event)
                self.spans.add(self.newest)
            self._last = event
        self._taken = done

    def _goes_on(self, trace: RunTrace, done: int) -> bool:
        is_same = self._run_id == trace.info.run_id and 0 < self._taken <= done
        return is_same and trace.events[self._taken - 1] is self._last

    def _begin(self, trace: RunTrace) -> None:
        self._run_id, self._last, self._taken = trace.info.run_id, None, 0
        self._walk = Walk(trace.requests, trace.info.plan.policy) if is_batch(trace) else None
        self.latency = RunningLatency(trace.requests)
        self.spans, self.newest = Spans(), None


def is_batch(trace: RunTrace) -> bool:
    """Tell whether several requests share the run."""
    return len(trace.requests) > 1
