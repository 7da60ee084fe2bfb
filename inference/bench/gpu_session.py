"""What the GPU report has measured so far, and how its stages are guarded.

Whatever a stage ends in, the ones before it stand and the ones after it have their turn. Nothing of
the report is kept in a stage: it is in the session as soon as it is known.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from inference.bench.gpu_checks import Check, step_times_do_not_overlap
from inference.bench.gpu_plan import Pace, budget_s
from inference.bench.gpu_report_text import Report, ReportRequest, batch_row
from inference.bench.gpu_setup import Bench, load_bench
from inference.bench.gpu_sizes import Sizes
from inference.bench.gpu_speeds import BatchSpeed, Speed
from inference.engine.clock import HostClock
from inference.engine.float32_products import is_tf32_on
from inference.models.loading import OnStage
from inference.models.memory_errors import is_out_of_memory
from inference.process.runner import library_versions
from inference.records.costs import Ceilings
from inference.records.errors import TokenByTokenError, first_line
from inference.records.model import Device
from inference.records.run import RunTrace
from inference.records.status import LoadStage

logger = logging.getLogger(__name__)
USUAL, FLOAT32 = "usual", "float32"
LoadBench = Callable[[str, str, str, Sizes, OnStage], Bench]


class HostTime(Protocol):
    """The part of a StepClock that tells the time."""

    def now_s(self) -> float:
        """Return host monotonic time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a report is made.

    Attributes:
        load: Loads a model: its name, the device, the dtype, the sizes, who is told.
        clock: Counts the time of all of it.
    """

    load: LoadBench = load_bench
    clock: HostTime = field(default_factory=HostClock)


class Session:
    """The state of one report.

    Attributes:
        subject: What is asked for.
        model_id: The model's full name, once it was loaded.
        sizes: What is measured, as chosen when the first step was timed.
        bench: The model that the stages measure with; None where there is none.
        dtype: What that was loaded in: usual or float32; empty where there is none.
        found: Where that is, as the report names it, and why there.
        pace: What one step takes.
        left_out: What the sizes leave out.
        checks: In the order of the stages.
        speeds: Likewise.
        runs: Recorded runs of one row.
        batches: The sweep of rows.
        ceilings: The device's roofs.
        reading_cost_s: What one telemetry sample takes.
        unread: Telemetry readings that are missing, with the reason.
        kept_runs: How many runs the files on disk hold.
    """

    def __init__(
        self, subject: ReportRequest, sizes: Sizes, on_stage: OnStage, surroundings: Surroundings
    ) -> None:
        self.subject = subject
        self.model_id = subject.model
        self.sizes = sizes
        self.bench: Bench | None = None
        self.dtype = ""
        self.found: tuple[Device, str] | None = None
        self.pace: Pace | None = None
        self.left_out: tuple[str, ...] = ()
        self.checks: list[Check] = []
        self.speeds: list[Speed] = []
        self.runs: list[RunTrace] = []
        self.batches: list[BatchSpeed] = []
        self.ceilings: Ceilings | None = None
        self.reading_cost_s: float | None = None
        self.unread: dict[str, str] = {}
        self.kept_runs = 0
        self._full = sizes
        self._on_stage = on_stage
        self._load = surroundings.load
        self._clock = surroundings.clock
        self._began_s = surroundings.clock.now_s()
        self._has_tf32 = is_tf32_on()

    @property
    def seconds(self) -> float:
        """What all of it has taken."""
        return self._clock.now_s() - self._began_s

    @property
    def left_s(self) -> float:
        """How much time is left; a dry run has any."""
        return float("inf") if not self._full.is_timed else self._budget_s - self.seconds

    @property
    def _budget_s(self) -> float:
        return budget_s(self.pace, has_compiled=self.subject.has_compiled)

    def tell(self, stage: str) -> None:
        """Say what is being done."""
        self._on_stage(LoadStage(stage=stage))

    def load(self, device: str, dtype: str) -> Bench:
        """Return the model on a device, the device's usual dtype by the name of auto."""
        return self._load(self.subject.model, device, dtype, self._full, self._on_stage)

    def use(self, bench: Bench, dtype: str) -> None:
        """Let the next stages measure with this."""
        self.bench, self.dtype = bench, dtype

    def free(self) -> None:
        """Give the memory of the bench's model back, if there is one."""
        bench, self.bench, self.dtype = self.bench, None, ""
        if bench is None:
            return
        try:
            bench.close()
        except RuntimeError:  # a device that an error has left unusable
            logger.warning("memory is not given back", exc_info=True)

    def report(self, pending: tuple[str, ...]) -> Report:
        """Return the report of what there is."""
        batch_runs = [batch.trace for batch in self.batches if batch.trace is not None]
        overlap = step_times_do_not_overlap([*self.runs, *batch_runs])
        device, note = self.found or (None, "")
        return Report(
            subject=replace(self.subject, model=self.model_id),
            device=device,
            device_note=note,
            machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            versions=library_versions(),
            made_at=datetime.now(UTC),
            pace=self.pace,
            left_out=self.left_out,
            pending=pending,
            checks=(*self.checks, overlap),
            speeds=tuple(self.speeds),
            batches=tuple(batch_row(batch) for batch in self.batches),
            ceilings=self.ceilings,
            reading_cost_s=self.reading_cost_s,
            unread=tuple(sorted(self.unread.items())),
            has_tf32=self._has_tf32,
            budget_s=self._budget_s,
            seconds=self.seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of the report.

    Attributes:
        name: What is done, in a few words.
        run: Does it, and puts what it finds into the session.
        needs_s: What it may take.
        dtype: Of the model that it measures with, in the session's words; empty for none.
        is_first: Without it there is nothing to report, so what the user got wrong is raised.
    """

    name: str
    run: Callable[[Session], None]
    needs_s: Callable[[Session], float] = lambda _session: 0.0
    dtype: str = USUAL
    is_first: bool = False


def carry_out(stage: Stage, session: Session) -> None:
    """Do one stage; what keeps it from its end becomes a row of the report.

    Raises:
        TokenByTokenError: It is the first, and the model or the device cannot be used.
    """
    reason = _why_not(stage, session)
    if reason:
        session.checks.append(_left_out(stage, reason))
        return
    session.tell(stage.name)
    try:
        stage.run(session)
    except TokenByTokenError as error:
        if stage.is_first:
            raise
        session.checks.append(_left_out(stage, first_line(error)))
    except Exception as error:  # a driver or a library may raise anything; the traceback is logged
        if is_out_of_memory(error):
            session.checks.append(_left_out(stage, "the device ran out of memory"))
            return
        logger.exception("%s ended early", stage.name)
        session.checks.append(
            Check(name=stage.name, is_passed=None, finding=first_line(error), is_broken=True)
        )


def _why_not(stage: Stage, session: Session) -> str:
    """Return why a stage is not begun; empty when it is."""
    if stage.dtype and stage.dtype != session.dtype:
        return "no model is loaded for it"
    needed_s, left_s = stage.needs_s(session), session.left_s
    if needed_s <= left_s:
        return ""
    left = f"{left_s:.0f} s were left" if left_s > 0 else "no time was left"
    return f"it may take {needed_s:.0f} s and {left}"


def _left_out(stage: Stage, reason: str) -> Check:
    return Check(name=stage.name, is_passed=None, finding=reason, is_left_out=True)
