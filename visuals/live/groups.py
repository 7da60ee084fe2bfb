"""Runs that belong together: one order after another, so that they do not disturb each other.

A group hands the hub its next order when a run of it has ended; other users' runs come in between.
A run that nobody watches any more ends the whole group. No torch.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from inference.process.messages import Action
from inference.process.orders import RunOrder, check_order
from inference.records.errors import InputError, PromptError, TokenByTokenError
from inference.records.status import RunState
from visuals.live.hub import Hub, app_hub
from visuals.live.live_run import LiveRun

MAX_RUNS = 160
PATIENCE = 4  # grace times: a hidden tab's timers sleep up to a minute between two runs
KEPT_GROUPS = 20
STOPPED = "stopped; the runs made until then are compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run to come.

    Attributes:
        label: What it is called on the page.
        is_warm_up: Made only so that the runs after it find a warm engine; not compared.
    """

    label: str
    order: RunOrder
    is_warm_up: bool = False


@dataclass(slots=True, kw_only=True)
class RunGroup:
    """A list of orders and the runs made of them so far.

    Attributes:
        runs: In the order of ``planned``; shorter while some have not begun.
        is_stopped: True once a user asked for its end; the run that goes takes a moment to stop.
        is_over: True once nothing of it will be run any more.
        message: Why it ended early; empty when it did not.
    """

    group_id: str
    planned: tuple[PlannedRun, ...]
    runs: list[LiveRun] = field(default_factory=list)
    is_stopped: bool = False
    is_over: bool = False
    message: str = ""

    @property
    def current(self) -> LiveRun | None:
        """The run made last; None before the first."""
        return self.runs[-1] if self.runs else None

    @property
    def compared_ids(self) -> tuple[str, ...]:
        """The runs that are compared, those that have put out something."""
        return tuple(
            run.run_id
            for run, planned in zip(self.runs, self.planned, strict=False)
            if not planned.is_warm_up and run.recording is not None
        )


class Groups:
    """All groups of the process, on one hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._groups: dict[str, RunGroup] = {}
        hub.on_end.append(self._ended)

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
        with self._hub.lock:
            self._go_on(group)
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

    def _ended(self, run: LiveRun) -> None:
        """Go on with the group of a run that has ended; called under the hub's lock."""
        for group in self._groups.values():
            if run is group.current and not group.is_over:
                self._take_end(group, run)
                self._go_on(group)

    def _go_on(self, group: RunGroup) -> None:
        """Submit the next order; one that fails at once makes room for the one after it."""
        while not group.is_over and len(group.runs) < len(group.planned):
            run = self._submit_next(group)
            if run is None or not run.state.is_final:
                return
            self._take_end(group, run)
        group.is_over = True

    def _submit_next(self, group: RunGroup) -> LiveRun | None:
        """Return the next run, None when the hub takes no more; the first must be taken."""
        planned = group.planned[len(group.runs)]
        order = planned.order
        try:
            run = self._hub.submit(order)
        except TokenByTokenError as error:
            if not group.runs:
                raise
            if not isinstance(error, PromptError):
                group.is_over = True
                group.message = str(error)
                return None
            run = _refused(order, str(error))
        run.patience, run.is_kept = PATIENCE, not planned.is_warm_up
        group.runs.append(run)
        return run

    def _take_end(self, group: RunGroup, run: LiveRun) -> None:
        if group.is_stopped or run.state in {RunState.ABANDONED, RunState.STOPPED}:
            group.is_over = True
            group.message = STOPPED if group.is_stopped else run.message or STOPPED


def _refused(order: RunOrder, sentence: str) -> LiveRun:
    """Return a run that the hub did not take: it failed, and those after it go on."""
    return LiveRun(order=order, state=RunState.FAILED, message=sentence)


@cache
def app_groups() -> Groups:
    """Return the process's groups, on its one hub."""
    return Groups(app_hub())
