"""How large everything is that the GPU report measures: the largest, and a dry run's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from inference.calibration.ceilings import RoofPlan, usual_plan
from inference.engine.clock import clock_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured.

    Attributes:
        prompt_tokens: Of every prompt.
        compared_tokens: First tokens that must be the same on the device and on the CPU.
        replayed_tokens: Of the runs whose recorded steps are compared with eager ones.
        new_tokens: Of the timed runs.
        warm_tokens: Of the eager run before them.
        wall_steps: In the tight loop that is held against wall time.
        batches: Rows of the runs of the sweep.
        batch_tokens: New tokens of each row there.
        repeats: Timed runs of each way to decode, of which the median counts.
        is_timed: False where step times are too few and too short to be judged, and the sizes stay
            as they are.
        plan: The sweeps of the roofs.
    """

    prompt_tokens: int
    compared_tokens: int
    replayed_tokens: int
    new_tokens: int
    warm_tokens: int
    wall_steps: int
    batches: tuple[int, ...]
    batch_tokens: int
    repeats: int
    is_timed: bool
    plan: Callable[[torch.device], RoofPlan]


FULL = Sizes(
    prompt_tokens=128,
    compared_tokens=24,
    replayed_tokens=256,
    new_tokens=768,
    warm_tokens=16,
    wall_steps=256,
    batches=(1, 2, 4, 8, 16, 32, 64),
    batch_tokens=64,
    repeats=2,
    is_timed=True,
    plan=usual_plan,
)


def dry_plan(device: torch.device) -> RoofPlan:
    """Return sweeps that end at once, whose figures mean nothing."""
    return RoofPlan(read_bytes=(1 << 20,), orders=(32, 64), clock=clock_for(device))


DRY = Sizes(
    prompt_tokens=12,
    compared_tokens=4,
    replayed_tokens=5,
    new_tokens=6,
    warm_tokens=2,
    wall_steps=6,
    batches=(1, 2),
    batch_tokens=3,
    repeats=1,
    is_timed=False,
    plan=dry_plan,
)
