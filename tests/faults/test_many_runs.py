"""Many runs in a row, and many models, on one engine: nothing is kept of those that are over."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

from inference.process.messages import LoadModel
from tests.inference.process.host_under_test import generate, host_with

WARM, MORE = 20, 40
# Of what the interpreter itself keeps more or less of; a run that is kept has hundreds.
SPARE_OBJECTS = 200


def objects_after(work: Callable[[], object], times: int) -> int:
    """Return how many objects there are after work was done so many times."""
    for _ in range(times):
        work()
    gc.collect()
    return len(gc.get_objects())


def test_runs_in_a_row_leave_nothing_behind(tiny_model_folder: Path) -> None:
    with host_with(tiny_model_folder) as (tell, _said):
        before = objects_after(lambda: tell(generate()), WARM)
        after = objects_after(lambda: tell(generate()), MORE)

    assert after - before < SPARE_OBJECTS


def test_models_in_turn_leave_nothing_behind(tiny_model_folder: Path) -> None:
    load = LoadModel(model=str(tiny_model_folder), dtype="float32", device="cpu")
    with host_with(tiny_model_folder) as (tell, _said):
        before = objects_after(lambda: tell(load), 3)
        after = objects_after(lambda: tell(load), 10)

    assert after - before < SPARE_OBJECTS
