"""Who sits in which slot of a batch, step by step, and a timeline of the slots.

Time is the run's own: step times and idle waits, without drawing, pausing or pacing. Lane -1 is the
queue of requests that have come in and have no slot yet. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import altair as alt

from inference.records.options import Policy
from inference.records.run import Request, RunTrace
from inference.records.steps import Phase, RowStep, StepEvent
from visuals.charts.theme import DECODE, HOST, HOST_LIGHT, PREFILL, Cell, Chart, Row, finished

EXPLANATION = {
    "what": "Left, one step: what each row has stored and what it is fed. Middle, one lane per "
    "slot over time. Right, the bytes of the step: weights are read once for all rows, K/V are "
    "each row's own.",
    "read": "Green is stored, blue fed in prefill, orange fed in decode, hatched padding: a row "
    "that is done and is fed nothing real until its batch is over. A waiting lane stands still "
    "while another row's prompt is fed; the queue holds requests without a slot.",
    "how": "Times measured: the step times of the steps with the idle waits between them; drawing, "
    "pausing and pacing are in none. Bytes and FLOPs counted from the model's shape.",
    "formula": "weights are read once per step; each row reads its own K/V: "
    "bytes = weights + the sum of the rows' K/V",
    "source": "Static batching keeps its rows until all are done; continuous batching refills a "
    "slot at the next step (Yu et al. 2022, Orca).",
}
QUEUE = -1
KINDS = {
    "prefill": PREFILL,
    "decode": DECODE,
    "padding": HOST_LIGHT,
    "waiting": HOST,
    "queue": "#F0E442",
}
MAX_SPANS = 1200
SAME_MOMENT_S = 1e-3


class Assigned(NamedTuple):
    """One row of the batch in one step.

    Attributes:
        number: The request, by its index in the run.
        fed: Tokens fed to it; 0 where it was fed nothing real.
        stored: Real tokens in its cache after the step.
        is_done: It has its last token, before or with this step.
    """

    slot: int
    number: int
    kind: str
    fed: int
    stored: int
    is_done: bool


class SlotStep(NamedTuple):
    """The whole batch in one step.

    Attributes:
        began_s: On the run's own time.
        columns: Columns of the cache, padding included.
        queued: Requests that had come in when it ended and had no slot.
        queue: From when on in this step how many of them waited.
        stored: Real tokens fed so far to each request that has begun, by its index in the run.
    """

    event: StepEvent
    began_s: float
    ended_s: float
    assigned: tuple[Assigned, ...]
    columns: int
    queued: int
    queue: tuple[tuple[float, int], ...]
    stored: tuple[tuple[int, int], ...]


class Walk:
    """Goes through a run's steps and keeps who sits where."""

    def __init__(self, requests: Sequence[Request], policy: Policy) -> None:
        self._requests = requests
        self._policy = policy
        self._number = {request.request_id: at for at, request in enumerate(requests)}
        self._slots: dict[int, int] = {}
        self._stored: dict[int, int] = {}
        self._done: set[int] = set()
        self._columns = 0
        self._now_s = 0.0

    def step(self, event: StepEvent) -> SlotStep:
        """Take the next step and return the batch in it."""
        self._leave()
        rows = {self._number[row.request_id]: row for row in event.rows}
        for number, row in rows.items():
            self._slots[row.slot] = number
            self._stored[number] = row.context_tokens
        self._widen(event)
        began_s = self._now_s + event.waited_s
        self._now_s = began_s + event.duration_s
        self._done |= {number for number, row in rows.items() if row.finish is not None}
        kind = event.phase.value
        assigned = tuple(
            self._assigned(slot, number, rows.get(number), kind)
            for slot, number in sorted(self._slots.items())
        )
        queue = self._queue(began_s)
        return SlotStep(
            event=event,
            began_s=began_s,
            ended_s=self._now_s,
            assigned=assigned,
            columns=self._columns,
            queued=queue[-1][1] if queue else 0,
            queue=queue,
            stored=tuple(self._stored.items()),
        )

    def _leave(self) -> None:
        """Free the slots of rows that are done: at once, or when their whole batch is."""
        gone = [slot for slot, number in self._slots.items() if number in self._done]
        if self._policy is Policy.CONTINUOUS or len(gone) == len(self._slots):
            for slot in gone:
                del self._slots[slot]
        if not self._slots:
            self._columns = 0

    def _widen(self, event: StepEvent) -> None:
        """Count the columns: a batch's longest row, and in a static one each step after it."""
        longest = max(self._stored[number] for number in self._slots.values())
        if self._policy is Policy.STATIC and event.phase is Phase.DECODE:
            self._columns = max(self._columns + 1, longest)
        elif self._policy is Policy.STATIC:
            self._columns = max(self._columns, longest)
        else:
            self._columns = longest

    def _assigned(self, slot: int, number: int, row: RowStep | None, kind: str) -> Assigned:
        if row is None:
            kind = "padding" if number in self._done else "waiting"
        return Assigned(
            slot=slot,
            number=number,
            kind=kind,
            fed=row.query_tokens if row is not None else 0,
            stored=self._stored[number],
            is_done=number in self._done,
        )

    def _queue(self, began_s: float) -> tuple[tuple[float, int], ...]:
        """Return how many wait from the step's beginning, and from each arrival within it, on."""
        waiting = sorted(
            max(one.arrival_s, began_s)
            for number, one in enumerate(self._requests)
            if one.arrival_s <= self._now_s and number not in self._stored
        )
        return tuple({since_s: count for count, since_s in enumerate(waiting, start=1)}.items())


def slot_steps(trace: RunTrace) -> Iterator[SlotStep]:
    """Yield the batch in each step of a run."""
    walk = Walk(trace.requests, trace.info.plan.policy)
    return (walk.step(event) for event in trace.events)


class Spans:
    """The stretches of time in which a slot did the same for the same request, step by step.

    Attributes:
        rows: One a stretch, by its beginning; the newest of each lane grows with the next step.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._open: dict[Cell, Row] = {}

    def add(self, step: SlotStep) -> None:
        """Take the next step."""
        for lane, number, kind, (began_s, ended_s) in _lanes(step):
            before = self._open.get(lane)
            if before is not None and _goes_on(before, number, kind, began_s):
                before["to"] = round(ended_s, 4)
                continue
            row: Row = {
                "k": len(self.rows),
                "lane": lane,
                "from": round(began_s, 4),
                "to": round(ended_s, 4),
                "kind": kind,
                "request": number,
            }
            self.rows.append(row)
            self._open[lane] = row


def span_rows(steps: Iterable[SlotStep]) -> list[Row]:
    """Return a row for each stretch of time in which a slot did the same for the same request."""
    spans = Spans()
    for step in steps:
        spans.add(step)
    return spans.rows


def slot_timeline(trace: RunTrace | None = None) -> Chart:
    """Return the lanes of the slots over time; without a trace, to be filled from outside."""
    base = alt.Chart(alt.NamedData("slot_spans"))
    bars = base.mark_bar(height=alt.RelativeBandSize(0.8)).encode(
        x=alt.X("from:Q", title="run time, s", scale=alt.Scale(nice=False), axis=_seconds()),
        x2="to:Q",
        y=alt.Y("lane:O", title=None, axis=_lane_axis()),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=[
            alt.Tooltip("kind:N", title="slot does"),
            alt.Tooltip("request:N", title="request"),
            alt.Tooltip("from:Q", title="from, s", format=".3f"),
            alt.Tooltip("to:Q", title="to, s", format=".3f"),
        ],
    )
    datasets = None
    if trace is not None:
        datasets = {"slot_spans": span_rows(slot_steps(trace))[-MAX_SPANS:]}
    return finished(
        alt.layer(bars),
        datasets,
        description="Timeline: what each slot of the batch does, over the run's own seconds.",
    )


def _lane_axis() -> alt.Axis:
    label = f"datum.value === {QUEUE} ? 'queue' : 'slot ' + (datum.value + 1)"
    return alt.Axis(labelExpr=label, labelOverlap="parity", ticks=False, domain=False)


def _seconds() -> alt.Axis:
    return alt.Axis(tickCount=5, grid=False)


def _lanes(step: SlotStep) -> Iterator[tuple[int, Cell, str, tuple[float, float]]]:
    """Yield lane, request, what happens there and when; the queue's request is how many wait."""
    ends_s = [*(since_s for since_s, _ in step.queue[1:]), step.ended_s]
    for (since_s, count), end_s in zip(step.queue, ends_s, strict=False):
        waiting = "1 waits" if count == 1 else f"{count} wait"
        yield QUEUE, waiting, "queue", (since_s, end_s)
    for assignment in step.assigned:
        number = str(assignment.number + 1)
        yield assignment.slot, number, assignment.kind, (step.began_s, step.ended_s)


def _goes_on(before: Row, number: Cell, kind: str, began_s: float) -> bool:
    is_same = before["kind"] == kind and before["request"] == number
    end_s = before["to"]
    return is_same and isinstance(end_s, float) and began_s - end_s < SAME_MOMENT_S
