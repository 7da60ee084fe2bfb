"""Carries out the engine process's measurements: roofs, and sweeps over tokens and batches.

During one, the process obeys a stop or the end only; other commands wait until it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection

import torch

from inference.calibration.batch_sweep import check_sweep, sweep_batches
from inference.calibration.ceilings import measure_ceilings
from inference.calibration.ceilings_store import save_ceilings
from inference.calibration.timings import Stopwatch
from inference.calibration.token_sweep import dated_sweep, sweep_tokens
from inference.engine.backend import TorchBackend
from inference.engine.clock import StepClock
from inference.models.devices import choose_device
from inference.models.loading import LoadedModel
from inference.process.messages import (
    Command,
    Measure,
    MeasureCeilings,
    MeasureEnded,
    Measuring,
    Reply,
    Shutdown,
    StopMeasuring,
    SweepBatches,
    SweepTokens,
)
from inference.records.errors import TokenByTokenError
from inference.records.status import LoadStage

STOPPED = MeasureEnded(sentence="stopped; nothing was changed")


class Surveyor:
    """Measures on one device, and obeys a stop during it.

    Attributes:
        later: Other commands that came in meanwhile, to be obeyed afterwards, in order.
    """

    def __init__(self, connection: Connection, report: Callable[[Reply], None]) -> None:
        self.later: list[Command] = []
        self._connection = connection
        self._report = report
        self._is_stopped = False

    def measure(self, command: Measure, loaded: LoadedModel | None, clock: StepClock) -> None:
        """Carry out one measurement and report its end, or why there is no result."""
        self._is_stopped = False
        try:
            if isinstance(command, MeasureCeilings):
                ended = self._measure_ceilings(loaded)
            elif isinstance(command, SweepBatches):
                ended = self._sweep_batches(command, loaded, clock)
            else:
                ended = self._sweep(command, loaded, clock)
        except TokenByTokenError as error:
            ended = MeasureEnded(sentence=str(error))
        self._report(ended)

    def _measure_ceilings(self, loaded: LoadedModel | None) -> MeasureEnded:
        device, dtype = device_and_dtype(loaded)
        measured = measure_ceilings(device, dtype, self._progress, self._should_stop)
        if measured is None:
            return STOPPED
        return MeasureEnded(ceilings=measured, is_kept=save_ceilings(measured, device, dtype))

    def _sweep(
        self, command: SweepTokens, loaded: LoadedModel | None, clock: StepClock
    ) -> MeasureEnded:
        if loaded is None:
            return MeasureEnded(
                sentence="no model is loaded, so there are no steps to time; load one first"
            )
        limit = loaded.context_limit
        counts = [count for count in command.counts if limit is None or count <= limit]
        backend = TorchBackend(loaded.model)
        points = sweep_tokens(backend, Stopwatch(clock), counts, self._progress, self._should_stop)
        return STOPPED if points is None else MeasureEnded(sweep=dated_sweep(loaded, points))

    def _sweep_batches(
        self, command: SweepBatches, loaded: LoadedModel | None, clock: StepClock
    ) -> MeasureEnded:
        """Report every point as soon as it is measured, so that a stop or a crash loses none."""
        if loaded is None:
            return MeasureEnded(
                sentence="no model is loaded, so there are no steps to time; load one first"
            )
        plan = check_sweep(command.batches, command.contexts)
        sweep = None
        for sweep in sweep_batches(loaded, Stopwatch(clock), plan, self._should_stop):
            done = len(sweep.points) + len(sweep.left_out)
            stage = LoadStage(stage=f"{done} of {len(plan)} points", ratio=done / len(plan))
            self._report(Measuring(stage=stage, batches=sweep))
        is_whole = sweep is not None and sweep.is_whole
        stopped = "" if is_whole else "stopped; what was measured until then is kept"
        return MeasureEnded(batches=sweep, sentence=stopped)

    def _progress(self, ratio: float, text: str) -> None:
        self._report(Measuring(stage=LoadStage(stage=text, ratio=ratio)))

    def _should_stop(self) -> bool:
        """Return whether a stop has come, or the end of the process."""
        while not self._is_stopped and self._connection.poll():
            try:
                command: Command = self._connection.recv()
            except (EOFError, OSError):
                command = Shutdown()
            self._is_stopped = isinstance(command, (Shutdown, StopMeasuring))
            if not isinstance(command, StopMeasuring):
                self.later.append(command)
        return self._is_stopped


def device_and_dtype(loaded: LoadedModel | None) -> tuple[torch.device, torch.dtype]:
    """Return those of the model held, else those that a model would get by default."""
    if loaded is None:
        return choose_device("auto", "auto")
    return loaded.model.device, loaded.model.dtype
