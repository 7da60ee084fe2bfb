"""Runs that belong together: one order after another, so that they do not disturb each other.

A group queues its next order when a run of it has ended; other users' runs come in between.
A run whose figures rest on steps that other programs disturbed is made again, three times at most.
A run that nobody watches any more ends the whole group. No torch.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from inference.figures.disturbance import (
    MOST_REPETITIONS,
    disturbance,
    rests_on_disturbed,
)
from inference.process.messages import Action
from inference.process.orders import RunOrder, check_order
from inference.records.errors import InputError
from inference.records.status import RunState
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

MAX_RUNS = 160
PATIENCE = 4  # grace times: a hidden tab's timers sleep up to a minute between two runs
KEPT_GROUPS = 20
AGAIN = ", again, since other programs disturbed it"
STOPPED = "stopped; the runs made until then are compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run to come.

    Attributes:
        label: What it is called on the page.
        is_warm_up: Made only so that the runs after it find a warm engine; not compared.
        attempt: 1 for the first; more where the one before it was disturbed and is made again.
    """

    label: str
    order: RunOrder
    is_warm_up: bool = False
    attempt: int = 1

    @property
    def again(self) -> PlannedRun:
        """The same run once more."""
        label = self.label if self.attempt > 1 else f"{self.label}{AGAIN}"
        return replace(self, label=label, attempt=self.attempt + 1)


@dataclass(slots=True, kw_only=True)
class RunGroup:
    """A list of orders and the runs made of them so far.

    Attributes:
        planned: Grows where a run is made again.
        runs: In the order of ``planned``; shorter while some have not begun.
        lost: Share of its steps that were disturbed, for each run that has ended.
        is_stopped: True once a user asked for its end; the run that goes takes a moment to stop.
        is_over: True once nothing of it will be run any more.
        message: Why it ended early; empty when it did not.
    """

    group_id: str
    planned: tuple[PlannedRun, ...]
    runs: list[LiveRun] = field(default_factory=list)
    lost: dict[str, float] = field(default_factory=dict)
    is_stopped: bool = False
    is_over: bool = False
    message: str = ""

    @property
    def current(self) -> LiveRun | None:
        """The run made last; None before the first."""
        return self.runs[-1] if self.runs else None

    @property
    def compared_ids(self) -> tuple[str, ...]:
        """The runs that are compared, those that have put out something.

        Of one made several times, that is the one that lost least.
        """
        kept: list[str] = []
        for run, planned in zip(self.runs, self.planned, strict=False):
            if planned.is_warm_up or run.recording is None:
                continue
            if planned.attempt == 1 or not kept:
                kept.append(run.run_id)
            elif self.lost.get(run.run_id, 1.0) < self.lost.get(kept[-1], 1.0):
                kept[-1] = run.run_id
        return tuple(kept)

    def take_end(self, run: LiveRun) -> None:
        """Note how far a run was disturbed, and plan it again if its figures rest on that."""
        trace = run.snapshot()
        planned = self.planned[len(self.runs) - 1]
        if trace is None or planned.is_warm_up or run.state is not RunState.DONE:
            return
        self.lost[run.run_id] = disturbance(trace.events).ratio
        if planned.attempt <= MOST_REPETITIONS and rests_on_disturbed(trace.events):
            made = len(self.runs)
            self.planned = (*self.planned[:made], planned.again, *self.planned[made:])


class Groups:
    """All groups of the process, on one hub."""

    def __init__(self, hub: Hub, known: dict[str, RunGroup] | None = None) -> None:
        self._hub = hub
        self._groups: dict[str, RunGroup] = {} if known is None else known

    def on(self, hub: Hub) -> Groups:
        """Return the same groups; what is started there runs on another visitor's hub."""
        return Groups(hub, self._groups)

    def start(self, planned: Sequence[PlannedRun]) -> RunGroup:
        """Queue the first order of a new group and return it.

        Raises:
            PromptError, InputError: An order cannot be run; nothing was queued.
        """
        if not planned:
            msg = "nothing is chosen to compare; choose at least one prompt"
            raise InputError(msg)
        if len(planned) > MAX_RUNS:
            msg = f"this makes {len(planned)} runs; {MAX_RUNS} at most go into one comparison, so "
            msg += "choose fewer prompts, settings or repeats"
            raise InputError(msg)
        for one in planned:
            check_order(one.order)
        group = RunGroup(group_id=secrets.token_urlsafe(6), planned=tuple(planned))
        first = self._hub.prepare(planned[0].order)  # without the lock, since it tokenises
        with self._hub.lock:
            self._add(group, first)
            self._groups[group.group_id] = group
        for old in list(self._groups)[:-KEPT_GROUPS]:
            del self._groups[old]
        return group

    def find(self, group_id: str) -> RunGroup | None:
        """Return the group with this id; None when there is none."""
        return self._groups.get(group_id)

    def touch(self, group: RunGroup) -> None:
        """Say that somebody looks at the group."""
        if group.current is not None:
            self._hub.touch(group.current)

    def stop(self, group: RunGroup) -> None:
        """End the run that goes and let the rest be."""
        group.is_stopped = True
        if group.current is not None:
            self._hub.control(group.current, Action.STOP)

    def _ended(self, group: RunGroup, run: LiveRun) -> None:
        """Go on with the group of a run that has ended; called under the hub's lock."""
        if group.is_over:
            return
        group.take_end(run)
        if group.is_stopped or run.state in {RunState.ABANDONED, RunState.STOPPED}:
            group.is_over = True
            group.message = STOPPED if group.is_stopped else run.message or STOPPED
        elif len(group.runs) == len(group.planned):
            group.is_over = True
        else:
            self._go_on(group)

    def _go_on(self, group: RunGroup) -> None:
        """Queue the next order; the hub tokenises it when its turn comes."""
        try:
            self._add(group, LiveRun.of(group.planned[len(group.runs)].order))
        except InputError as error:
            group.is_over, group.message = True, str(error)

    def _add(self, group: RunGroup, run: LiveRun) -> None:
        """Queue the group's next run, unless the hub takes no more."""
        planned = group.planned[len(group.runs)]
        run.patience, run.is_kept = PATIENCE, not planned.is_warm_up
        run.on_end = partial(self._ended, group)
        group.runs.append(run)
        try:
            self._hub.enqueue(run)
        except InputError:
            group.runs.remove(run)
            raise
