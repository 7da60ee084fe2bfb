"""How surely disturbed steps are found: beside a busy loop on one core, and with nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from inference.bench.rounds import Spread, Target, spread_of
from inference.bench.subjects import Setting, own_events
from inference.calibration.ceilings import OnProgress
from inference.engine.clock import StepClock
from inference.engine.run_delay import ThreadDelays, why_unknown
from inference.figures.disturbance import disturbance
from inference.models.loading import LoadedModel
from inference.records.steps import Phase, StepEvent

CONTEXT = 128
STEPS = 24
BUSY_LOOP = "while True: pass"
THREAD_S = 0.05  # of processor time, some turns of the scheduler
READINGS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbanceFigures:
    """How surely disturbed steps are found.

    Attributes:
        marked_beside: Share of decode steps marked in a run beside a busy loop on one core.
        marked_alone: The same with no busy loop. Other programs of the machine count: read it with
            the load average.
        delay_ratio: Of one thread that shares a core with a busy loop, the delay counted by its
            wall time less its processor time; 1 when it is exact.
        cost_ratio: The time to read the delays before and after a step, by the time of the step.
    """

    marked_beside: Spread
    marked_alone: Spread
    delay_ratio: Spread
    cost_ratio: Spread


def measure_disturbance(
    loaded: LoadedModel, clock: StepClock, rounds: int, on_progress: OnProgress
) -> DisturbanceFigures | None:
    """Return how surely disturbed steps are found; None where run delays are not counted."""
    if why_unknown():
        return None
    on_progress(0.0, "steps beside a busy loop")
    setting = Setting(model=loaded.model, clock=clock, context=CONTEXT, steps=STEPS)
    own_events(setting)  # the first call after a change of the model's code
    beside: list[float] = []
    alone: list[float] = []
    costs: list[float] = []
    for _ in range(rounds):
        events = own_events(setting)
        alone.append(marked_share(events))
        costs.append(reading_s() / median(event.duration_s for event in events))
        with busy_loop(min(os.sched_getaffinity(0))):
            beside.append(marked_share(own_events(setting)))
    return DisturbanceFigures(
        marked_beside=spread_of(beside),
        marked_alone=spread_of(alone),
        delay_ratio=spread_of([counted_by_lost() for _ in range(rounds)]),
        cost_ratio=spread_of(costs),
    )


def disturbance_targets(figures: DisturbanceFigures | None) -> list[Target]:
    """Return what is to be reached beside what was measured."""
    found = figures
    return [
        Target(
            name="steps marked beside a busy loop on one core",
            wanted=0.95,
            found=found.marked_beside if found else None,
        ),
        Target(
            name="steps marked without one",
            wanted=0.03,
            found=found.marked_alone if found else None,
            is_at_most=True,
        ),
        Target(
            name="reading run delays ÷ step time",
            wanted=0.01,
            found=found.cost_ratio if found else None,
            is_at_most=True,
        ),
    ]


def marked_share(events: list[StepEvent]) -> float:
    """Return the share of a run's decode steps that are marked as disturbed."""
    count = disturbance(event for event in events if event.phase is Phase.DECODE)
    return count.disturbed / count.steps


def counted_by_lost() -> float:
    """Return the delay counted by that lost, of this thread on one core with a busy loop.

    A thread that never sleeps either has the core or waits for it, so what it lost is its wall time
    less its processor time, at any load of the machine.
    """
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    os.sched_setaffinity(0, {core})
    try:
        with busy_loop(core), ThreadDelays() as delays:
            delays.start()
            began_s, ran_s = time.perf_counter(), time.thread_time()
            while time.thread_time() - ran_s < THREAD_S:
                pass
            lost_s = (time.perf_counter() - began_s) - (time.thread_time() - ran_s)
            counted_s = delays.stop()
    finally:
        os.sched_setaffinity(0, allowed)
    return (counted_s or 0.0) / lost_s


def reading_s() -> float:
    """Return the median time to read the delays before and after a step."""
    taken_s: list[float] = []
    with ThreadDelays() as delays:
        for _ in range(READINGS):
            began_s = time.perf_counter()
            delays.start()
            delays.stop()
            taken_s.append(time.perf_counter() - began_s)
    return median(taken_s)


@contextmanager
def busy_loop(core: int) -> Generator[None]:
    """Keep a program busy on one core meanwhile."""
    program = subprocess.Popen([sys.executable, "-c", BUSY_LOOP])
    try:
        os.sched_setaffinity(program.pid, {core})
        yield
    finally:
        program.kill()
        program.wait()
