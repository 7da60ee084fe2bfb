"""Measures how the time of a step grows with the number of tokens fed in it, on the model held.

Few tokens cost as much time as one, since all weights are read either way; from some number on the
time grows with the tokens. Where that is on this machine is what the sweep finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from inference.calibration.ceilings import OnProgress, ShouldStop
from inference.engine.backend_protocol import Backend
from inference.engine.clock import StepClock
from inference.models.loading import LoadedModel
from inference.records.rooflines import TokenSweep, TokenTiming

WARM_UPS = 1
REPEATS = 3


def sweep_tokens(
    backend: Backend,
    clock: StepClock,
    counts: Sequence[int],
    on_progress: OnProgress = lambda _ratio, _text: None,
    should_stop: ShouldStop = lambda: False,
) -> tuple[TokenTiming, ...] | None:
    """Return the times of steps that feed these counts to an empty cache; None when stopped.

    Args:
        backend: Its cache is forgotten.
        clock: Times the steps.
        counts: Tokens of each step, by size.
        on_progress: Called with how far it is, 0 to 1, and what is measured.
        should_stop: Asked before every timing.

    Raises:
        BackendError, OutOfMemoryError: From the backend.
    """
    points: list[TokenTiming] = []
    total = sum(counts) + len(counts)  # a step takes about one unit for the weights and one a token
    done = 0
    for count in counts:
        on_progress(done / total, f"steps of {count} tokens")
        timings: list[float] = []
        for _ in range(WARM_UPS + REPEATS):
            if should_stop():
                return None
            timings.append(_timing(backend, clock, count))
        timed = timings[WARM_UPS:]
        points.append(
            TokenTiming(
                tokens=count,
                best_s=min(timed),
                median_s=median(timed),
                worst_s=max(timed),
                repeats=len(timed),
            )
        )
        done += count + 1
    on_progress(1.0, "done")
    return tuple(points)


def dated_sweep(loaded: LoadedModel, points: tuple[TokenTiming, ...]) -> TokenSweep:
    """Return the timings with the model and device they were measured on, dated today."""
    return TokenSweep(
        model_id=loaded.model_id,
        device=loaded.device,
        measured_at=datetime.now(UTC),
        points=points,
    )


def _timing(backend: Backend, clock: StepClock, count: int) -> float:
    backend.start()
    ids = [[1 + index % 100 for index in range(count)]]  # any tokens: their values cost nothing
    clock.start_timing()
    backend.forward(ids).argmax(dim=-1).cpu()  # waits for the device, as a step does
    return clock.end_timing()
