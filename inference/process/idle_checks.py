"""The self-check of the model held, done while the engine is idle, once for each version of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inference.checks.job import BUDGET_S, CheckLimits, check_model
from inference.checks.subject import subject_of
from inference.models.loading import LoadedModel
from inference.process.idle_work import IdleWork
from inference.process.messages import Checked, CheckFailed, Reply
from inference.records.checks import SelfCheck
from inference.records.errors import first_line
from inference.runs.kept_checks import save_check, saved_check

JOB = "self-check"


class IdleChecks:
    """Checks the model held, and says how far it is.

    Attributes:
        warning: What differs, for the runs of this model to carry; empty when nothing is known to.
    """

    def __init__(self, idle: IdleWork, report: Callable[[Reply], None]) -> None:
        self.warning = ""
        self._idle = idle
        self._report = report

    def forget(self) -> None:
        """Leave the model that was held, checked or not."""
        self.warning = ""
        self._idle.drop(JOB)

    def check_once(self, loaded: LoadedModel) -> SelfCheck | None:
        """Return the check kept for a model; check in a quiet moment what is not checked yet."""
        kept = saved_check(subject_of(loaded))
        if kept is not None:
            self.warning = kept.warning
        if kept is None or kept.is_cut_short:
            limits = CheckLimits(should_stop=self._idle.is_called, budget_s=BUDGET_S)
            self._idle.add(JOB, self._told(check_model(loaded, limits, kept)))
        return kept

    def check_anew(self, loaded: LoadedModel) -> None:
        """Check a model whatever is kept of it, for as long as it takes."""
        limits = CheckLimits(should_stop=self._idle.is_called)
        self._idle.add(JOB, self._told(check_model(loaded, limits)))

    def _told(self, states: Iterator[SelfCheck]) -> Iterator[None]:
        """Go through a check, and report each result as soon as it is there."""
        told = -1
        try:
            for state in states:
                if state.is_whole or len(state.checks) > told:
                    told = len(state.checks)
                    self._tell(state)
                yield
        except Exception as error:
            # No fault of a check may leave a page waiting for it.
            self._report(CheckFailed(sentence=f"the check ended early: {first_line(error)}"))
            raise

    def _tell(self, state: SelfCheck) -> None:
        if state.warning or state.is_whole:
            self.warning = state.warning
        self._report(Checked(check=state, is_kept=not state.is_whole or save_check(state)))
