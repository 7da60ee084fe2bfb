"""All runs of the app process by id, those waiting in order, and the one on the engine.

Belongs to the hub, whose lock is held by whoever calls. No torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from inference.records.checks import SelfCheck
from inference.records.errors import InputError
from inference.records.rooflines import MeasuredCeilings
from inference.records.run import RunTrace
from inference.records.status import RunState
from visuals.live.live_run import LiveRun

QUEUE_LIMIT = 32
KEPT_RUNS = 40
# A page that shares two busy cores with a model that loads has taken 20 s to follow its run.
FIRST_VIEWER_S = 30.0


class Registry:
    """Every run that a page can show.

    Attributes:
        waiting: Runs that the engine has not taken up, the next one first.
        active: The run on the engine; None while there is none.
    """

    def __init__(self, now: Callable[[], float], grace_s: float) -> None:
        self.waiting: deque[LiveRun] = deque()
        self.active: LiveRun | None = None
        self._runs: dict[str, LiveRun] = {}
        self._now = now
        self._grace_s = grace_s

    def add(self, run: LiveRun) -> LiveRun:
        """Take a run, forget old ones for it, and return it."""
        run.last_seen_s = self._now()
        self._runs[run.run_id] = run
        self._forget_old()
        return run

    def add_recorded(self, trace: RunTrace, run_id: str) -> LiveRun:
        """Take a run that was made before, under this id, and return it."""
        return self.add(
            LiveRun(
                run_id=run_id,
                order=None,
                state=trace.state if trace.state.is_final else RunState.STOPPED,
                message=trace.message,
                recorded=trace,
            )
        )

    def queue(self, run: LiveRun) -> LiveRun:
        """Take a run that is to be made, behind those that wait, and return it.

        Raises:
            InputError: Too many wait.
        """
        if len(self.waiting) >= QUEUE_LIMIT:
            msg = f"{QUEUE_LIMIT} runs are waiting already; try again when some have finished"
            raise InputError(msg)
        self.waiting.append(run)
        return self.add(run)

    def find(self, run_id: str) -> LiveRun | None:
        """Return the run with this id, None when there is none."""
        return self._runs.get(run_id)

    def all(self) -> tuple[LiveRun, ...]:
        """Return every run, the oldest first."""
        return tuple(self._runs.values())

    def queue_position(self, run: LiveRun) -> int | None:
        """Return a run's position in the queue, 1 for the next; None when it does not wait."""
        return self.waiting.index(run) + 1 if run in self.waiting else None

    def unwatched(self) -> tuple[LiveRun, ...]:
        """Return the runs made or to be made that nobody has watched for their grace time."""
        alive = [*self.waiting] + ([self.active] if self.active is not None else [])
        return tuple(
            run
            for run in alive
            if run.viewers == 0 and self._now() - run.last_seen_s > self.grace_s(run)
        )

    def grace_s(self, run: LiveRun) -> float:
        """Return how long a run may go unwatched."""
        first = 0.0 if run.was_watched else FIRST_VIEWER_S
        return self._grace_s * run.patience + first

    def add_ceilings(self, measured: MeasuredCeilings) -> None:
        """Give the measured roofs to runs that were made here before."""
        for run in self._runs.values():
            recording = run.recording
            if recording is not None and recording.info.device == measured.device:
                recording.info = replace(recording.info, ceilings=measured.ceilings)

    def add_check(self, check: SelfCheck) -> None:
        """Mark the runs that were made here with what a check is of, as far as it is."""
        if not (check.warning or check.is_whole):
            return
        subject = check.subject
        made_with = (subject.model_id, subject.device, subject.attention, subject.kernels)
        for run in self._runs.values():
            recording = run.recording
            if recording is None:
                continue
            info = recording.info
            if (info.model_id, info.device, info.attention, info.kernels) == made_with:
                recording.info = replace(info, check_warning=check.warning)

    def forget_spare(self) -> None:
        """Drop every finished run that nobody watches, for lack of memory."""
        self._forget_old(kept=0)

    def _forget_old(self, kept: int = KEPT_RUNS) -> None:
        """Drop the oldest finished runs nobody watches beyond the number kept."""
        spare = [run for run in self._runs.values() if self._is_spare(run)]
        for run in spare[: max(0, len(self._runs) - kept)]:
            del self._runs[run.run_id]

    def _is_spare(self, run: LiveRun) -> bool:
        """Tell whether nothing is lost with a run; one that plays again is made anew at a press."""
        is_idle = run.viewers == 0
        if run.replay is not None:
            return is_idle and self._now() - run.last_seen_s > self._grace_s
        return is_idle and run.state.is_final and not run.is_unwritten
