"""Measures how the time of a step grows with the number of tokens fed in it, on the model held.

Few tokens cost as much time as one, since all weights are read either way; from some number on the
time grows with the tokens. Where that is on this machine is what the sweep finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from statistics import median

from inference.calibration.ceilings import OnProgress, ShouldStop
from inference.calibration.timings import (
    Stopwatch,
    Timing,
    Timings,
    quiet_timings,
)
from inference.engine.backend_protocol import Backend
from inference.figures.disturbance import MOST_REPETITIONS
from inference.figures.sweeps import impossible
from inference.models.loading import LoadedModel
from inference.records.rooflines import TokenSweep, TokenTiming

WARM_UPS = 1
REPEATS = 3


class _StoppedError(Exception):
    """Someone asked to stop; never leaves this module."""


def sweep_tokens(
    backend: Backend,
    stopwatch: Stopwatch,
    counts: Sequence[int],
    on_progress: OnProgress = lambda _ratio, _text: None,
    should_stop: ShouldStop = lambda: False,
) -> tuple[TokenTiming, ...] | None:
    """Return the times of steps that feed these counts to an empty cache; None when stopped.

    Args:
        backend: Its cache is forgotten.
        stopwatch: Times the steps.
        counts: Tokens of each step, by size.
        on_progress: Called with how far it is, 0 to 1, and what is measured.
        should_stop: Asked before every timing.

    Raises:
        BackendError, OutOfMemoryError: From the backend.
    """

    def measured(count: int) -> TokenTiming:
        for _ in range(WARM_UPS):
            _timing(backend, stopwatch, count, should_stop)

        def measure(missing: int) -> list[Timing]:
            return [_timing(backend, stopwatch, count, should_stop) for _ in range(missing)]

        return _point(count, quiet_timings(measure, REPEATS))

    try:
        return _swept(counts, measured, on_progress)
    except _StoppedError:
        return None


def _swept(
    counts: Sequence[int], measured: Callable[[int], TokenTiming], on_progress: OnProgress
) -> tuple[TokenTiming, ...]:
    """Return a point for each count; one that cannot be is measured again, three times at most."""
    points: list[TokenTiming] = []
    total = sum(counts) + len(counts)  # a step takes about one unit for the weights and one a token
    done = 0
    for count in counts:
        on_progress(done / total, f"steps of {count} tokens")
        points.append(measured(count))
        for _ in range(MOST_REPETITIONS):
            wrong = impossible([(one.tokens, one.median_s) for one in points])
            if not wrong:
                break
            points = [
                min(one, measured(one.tokens), key=_median_of) if one.tokens in wrong else one
                for one in points
            ]
        done += count + 1
    on_progress(1.0, "done")
    return tuple(points)


def _median_of(point: TokenTiming) -> float:
    """Return what two readings of a point are told by: other programs only make it larger."""
    return point.median_s


def _point(count: int, timings: Timings) -> TokenTiming:
    seconds = timings.seconds
    return TokenTiming(
        tokens=count,
        best_s=min(seconds),
        median_s=median(seconds),
        worst_s=max(seconds),
        repeats=len(seconds),
        is_disturbed=timings.is_disturbed,
    )


def dated_sweep(loaded: LoadedModel, points: tuple[TokenTiming, ...]) -> TokenSweep:
    """Return the timings with the model and device they were measured on, dated today."""
    return TokenSweep(
        model_id=loaded.model_id,
        device=loaded.device,
        measured_at=datetime.now(UTC),
        points=points,
    )


def _timing(backend: Backend, stopwatch: Stopwatch, count: int, should_stop: ShouldStop) -> Timing:
    if should_stop():
        raise _StoppedError
    backend.start()
    ids = [[1 + index % 100 for index in range(count)]]  # any tokens: their values cost nothing
    # Reading the tokens waits for the device, as a step does.
    return stopwatch.time(lambda: backend.forward(ids).argmax(dim=-1).cpu())
