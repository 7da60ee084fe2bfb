"""Makes what comes with the program: runs and measurements, each again until it was quiet.

A run is quiet when no step of it was disturbed by another program, no point lies above the roofs
and there is nothing to note of the device. Of several that were not, the one disturbed least is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from inference.calibration.batch_sweep import check_sweep, sweep_batches
from inference.calibration.ceilings import measure_ceilings
from inference.calibration.timings import Stopwatch
from inference.calibration.token_sweep import dated_sweep, sweep_tokens
from inference.counting.costs import step_cost
from inference.counting.roofline import roofline_point, work_of
from inference.engine.backend import TorchBackend
from inference.figures.device import notes_of
from inference.figures.disturbance import is_disturbed
from inference.models.loading import LoadedModel
from inference.models.miniatures import Miniature, miniature
from inference.models.tokenization import TextCodec
from inference.process.headless import HeadlessRunner
from inference.process.orders import RunOrder, build_requests
from inference.process.recaptures import with_attention
from inference.process.recording_plans import (
    EIGHT_PROMPTS,
    RecordingPlan,
    check_recordings,
    order_for,
    recording_plans,
)
from inference.process.runner import generation_options
from inference.records.costs import Ceilings
from inference.records.errors import BackendError
from inference.records.options import Sampling
from inference.records.rooflines import SWEPT_TOKENS, MeasuredCeilings
from inference.records.run import RunTrace
from inference.records.steps import Part
from inference.runs.recordings import Measurements, write_measurements, write_runs

OnStage = Callable[[str], None]

WARM_TOKENS = 4
SWEPT_BATCHES, SWEPT_CONTEXTS = (1, 2, 4, 8), (64, 512, 2048)


class Recorder:
    """Makes runs and measurements on one model, and on small ones beside it."""

    def __init__(self, loaded: LoadedModel, on_stage: OnStage, tries: int) -> None:
        self._loaded = loaded
        self._codec = TextCodec.from_files(loaded.tokenizer_files)
        self._runner = HeadlessRunner(loaded, self._codec)
        self._say = on_stage
        self._tries = tries

    def record(self, folder: Path, only: Sequence[str] = ()) -> None:
        """Make everything and write it into a folder.

        Args:
            folder: Made if need be.
            only: Names of the recordings to make; then nothing is measured but the roofs, which
                stay with these runs. Empty for everything.

        Raises:
            InputError: There is no such recording, or it cannot be written.
        """
        plans = recording_plans()
        check_recordings(only)
        folder.mkdir(parents=True, exist_ok=True)
        roofs = self._roofs_of_all(folder, is_written=not only)
        self.warm(roofs)
        for name in only or plans:
            self._say(name)
            small = plans[name].miniature
            maker = self if small is None else self._beside(small, roofs)
            write_runs(maker.made(plans[name]), name, folder)

    def warm(self, roofs: Ceilings) -> None:
        """Have runs carry these roofs, and let first-call costs fall on one that is not kept."""
        self._runner.ceilings = roofs
        self._run(order_for(EIGHT_PROMPTS[:1], WARM_TOKENS), ())

    def made(self, plan: RecordingPlan) -> tuple[RunTrace, ...]:
        """Return the runs of a recording, with the attention weights that it keeps."""
        traces = tuple(self._quiet_run(order, plan.samplings) for order in plan.orders)
        if not plan.captured:
            return traces
        backend = self._runner.runner.backend
        return tuple(
            with_attention(trace, backend, plan.captured, budget_bytes=plan.attention_bytes)
            for trace in traces
        )

    def _roofs_of_all(self, folder: Path, *, is_written: bool) -> Ceilings:
        """Return the roofs that the runs carry; where everything is made, with the sweeps."""
        if not is_written:
            return self._roofs().ceilings
        measured = self._measurements()
        write_measurements(measured, folder)
        return measured.ceilings.ceilings

    def _beside(self, kind: Miniature, roofs: Ceilings) -> Recorder:
        """Return a recorder on a small model, under the same roofs."""
        small = Recorder(miniature(kind, self._loaded), self._say, self._tries)
        small.warm(roofs)
        return small

    def _measurements(self) -> Measurements:
        loaded = self._loaded
        roofs = self._roofs()
        self._say("sweep over tokens")
        stopwatch = Stopwatch(self._runner.runner.clock)
        points = sweep_tokens(TorchBackend(loaded.model), stopwatch, SWEPT_TOKENS)
        self._say("sweep over batches")
        plan = check_sweep(SWEPT_BATCHES, SWEPT_CONTEXTS)
        *_, batches = sweep_batches(loaded, stopwatch, plan)
        if points is None:
            msg = "the sweep over tokens was stopped"
            raise BackendError(msg)
        return Measurements(ceilings=roofs, tokens=dated_sweep(loaded, points), batches=batches)

    def _roofs(self) -> MeasuredCeilings:
        """Return the highest of several measurements of the roofs, up to the first quiet one."""
        device, dtype = self._loaded.model.device, self._loaded.model.dtype
        best: MeasuredCeilings | None = None
        for attempt in range(self._tries):
            self._say(f"roofs, attempt {attempt + 1}")
            measured = _measured(device, dtype)
            if best is None or _height(measured) > _height(best):
                best = measured
            if not best.is_disturbed:
                break
        if best is None:
            msg = "no roofs were measured; give at least one try"
            raise BackendError(msg)
        return best

    def _quiet_run(self, order: RunOrder, samplings: Sequence[Sampling] = ()) -> RunTrace:
        """Return a run that nothing disturbed, or after all tries the one disturbed least.

        Args:
            order: What is run.
            samplings: How each row chooses its tokens; empty for as the order says.
        """
        best: RunTrace | None = None
        for attempt in range(self._tries):
            self._say(f"{order.prompts[0][:40]!r}, attempt {attempt + 1}")
            trace = self._run(order, samplings)
            if best is None or disturbance(trace) < disturbance(best):
                best = trace
            if not disturbance(best):
                break
        if best is None:
            msg = "no run was made; give at least one try"
            raise BackendError(msg)
        self._say(
            f"kept, {len(best.events)} steps; disturbed ones, points above a roof and notes: "
            f"{disturbance(best)}"
        )
        return best

    def _run(self, order: RunOrder, samplings: Sequence[Sampling]) -> RunTrace:
        requests = build_requests(order, self._codec, self._loaded.context_limit)
        if samplings:
            pairs = zip(requests, samplings, strict=True)
            requests = tuple(replace(request, sampling=sampling) for request, sampling in pairs)
        trace = self._runner.run(requests, seed=order.seed, options=generation_options(order))
        if trace.message:
            raise BackendError(trace.message)
        return trace


def disturbance(trace: RunTrace) -> int:
    """Return how many things of a run would need a word of excuse; 0 for a quiet one."""
    disturbed = sum(map(is_disturbed, trace.events))
    return disturbed + len(steps_above_roofs(trace)) + len(notes_of(trace))


def steps_above_roofs(trace: RunTrace) -> tuple[int, ...]:
    """Return the steps of a run that lie above its roofs, whole or in part."""
    return tuple(event.index for event in trace.events if _is_above(trace, event.index))


def _is_above(trace: RunTrace, index: int) -> bool:
    event, roofs = trace.events[index], trace.info.ceilings
    if roofs is None or not trace.info.shape.matrices:
        return False
    cost = step_cost(
        trace.info.shape, [(row.query_tokens, row.context_tokens) for row in event.rows]
    )
    timed = [(Part.STEP, event.duration_s), *((one.part, one.duration_s) for one in event.parts)]
    points = (roofline_point(work_of(cost, part), seconds, roofs) for part, seconds in timed)
    return any(point is not None and bool(point.alarm) for point in points)


def _measured(device: torch.device, dtype: torch.dtype) -> MeasuredCeilings:
    measured = measure_ceilings(device, dtype)
    if measured is None:
        msg = "the measurement of the roofs was stopped"
        raise BackendError(msg)
    return measured


def _height(measured: MeasuredCeilings) -> float:
    """Return a number that grows with both roofs."""
    return measured.ceilings.bytes_per_s * measured.ceilings.flops_per_s
