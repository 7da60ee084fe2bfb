"""The sweep over batches and contexts, on a tiny model and a scripted clock."""

from __future__ import annotations

import pytest
import torch

from inference.calibration.batch_sweep import REPEATS, WARM_UPS, check_sweep, sweep_batches
from inference.calibration.timings import Stopwatch
from inference.counting.costs import kv_stored_bytes
from inference.figures.disturbance import MOST_REPETITIONS
from inference.figures.sweeps import is_possible
from inference.records.errors import InputError
from tests.doubles import ScriptedClock, ScriptedDelays
from tests.families import loaded_model as loaded


def stopwatch() -> Stopwatch:
    """Return one whose warm timings are long and whose first timed ones are 1, 2 and 4 seconds."""
    first = [100.0] * WARM_UPS + [1.0, 4.0, 2.0]
    return undisturbed(*first, *([9.0] * WARM_UPS + [2.5] * 3) * 9)


def undisturbed(*seconds: float) -> Stopwatch:
    """Return a stopwatch with a script, from which other programs take nothing."""
    return Stopwatch(ScriptedClock(seconds), ScriptedDelays)


def test_every_pair_is_measured_and_the_first_step_times_do_not_count() -> None:
    *_, sweep = sweep_batches(loaded(), stopwatch(), check_sweep([2, 1], [20, 10]))

    assert [(timing.batch, timing.context_tokens) for timing in sweep.points] == [
        (1, 10), (2, 10), (1, 20), (2, 20),
    ]  # fmt: skip
    first = sweep.points[0]
    assert (first.best_s, first.median_s, first.worst_s) == (1.0, 2.0, 4.0)
    assert (first.sequence_tokens_per_s, sweep.points[1].batch_tokens_per_s) == (0.5, 0.8)
    assert sweep.is_whole


def test_a_row_slower_than_two_is_measured_again_and_the_quicker_reading_stays() -> None:
    """A sweep printed 3.1 times the tokens/s from twice the rows."""
    warm = [9.0] * WARM_UPS
    watch = undisturbed(*warm, 3.0, 3.0, 3.0, *warm, 1.0, 1.0, 1.0, *warm, 2.0, 0.9, 0.8)

    *_, sweep = sweep_batches(loaded(), watch, check_sweep([1, 2], [10]))

    assert [point.median_s for point in sweep.points] == pytest.approx([0.9, 1.0])


def test_a_reading_that_stays_impossible_is_kept_as_it_was_measured() -> None:
    warm = [9.0] * WARM_UPS
    watch = undisturbed(*warm, 3.0, 3.0, 3.0, *warm, 1.0, 1.0, 1.0, *[3.0] * 5 * MOST_REPETITIONS)

    *_, sweep = sweep_batches(loaded(), watch, check_sweep([1, 2], [10]))

    assert [point.median_s for point in sweep.points] == [3.0, 1.0]
    assert [is_possible(sweep, point) for point in sweep.points] == [False, True]


def test_disturbed_steps_are_measured_again_on_a_cache_filled_anew() -> None:
    """All three timings of the first time through lose half of their second."""
    lost = iter([0.0] * WARM_UPS + [0.5] * 3)
    times = ScriptedClock([1.0] * (WARM_UPS + REPEATS) + [0.5] * (WARM_UPS + REPEATS))
    watch = Stopwatch(times, lambda: ScriptedDelays(next(lost, 0.0)))

    *_, sweep = sweep_batches(loaded(), watch, check_sweep([1], [10]))

    [point] = sweep.points
    assert (point.best_s, point.worst_s, point.repeats) == (0.5, 0.5, 3)
    assert not point.is_disturbed


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
def test_the_cache_holds_the_bytes_of_the_formula(family: str) -> None:
    model = loaded(family)

    *_, sweep = sweep_batches(model, stopwatch(), check_sweep([3], [20]))

    expected = 3 * kv_stored_bytes(model.shape, 20)
    if family == "mistral":  # a layer keeps one token less than its window between two steps
        expected = expected * 5 // 6
    assert sweep.points[0].used_bytes == expected


def test_a_stop_keeps_what_was_measured() -> None:
    answers = iter([False, False, True])

    *_, sweep = sweep_batches(
        loaded(), stopwatch(), check_sweep([1, 2, 4], [10]), should_stop=lambda: next(answers)
    )

    assert [timing.batch for timing in sweep.points] == [1, 2]
    assert not sweep.is_whole


def test_a_point_without_room_is_left_out_with_its_reason_and_the_rest_goes_on() -> None:
    model = loaded()
    room = 2 * kv_stored_bytes(model.shape, 10)

    def free(_place: torch.device) -> int:
        return room

    *_, sweep = sweep_batches(model, stopwatch(), check_sweep([1, 4], [10, 200]), free_bytes=free)

    assert [(timing.batch, timing.context_tokens) for timing in sweep.points] == [(1, 10)]
    assert "4 rows of 10 tokens need" in sweep.left_out[0].reason
    assert "takes 128 tokens, not 200" in sweep.left_out[1].reason


@pytest.mark.parametrize(
    ("batches", "contexts", "sentence"),
    [([], [64], "nothing is chosen"),
     ([0], [64], "0 rows; give 1"), ([64], [64], "64 rows; give 1"),
     ([1], [3], "too short")],
)  # fmt: skip
def test_what_cannot_be_swept_is_refused(
    batches: list[int], contexts: list[int], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        check_sweep(batches, contexts)


def test_a_recurrent_model_is_refused() -> None:
    with pytest.raises(InputError, match="recurrent layers"):
        list(sweep_batches(loaded("mamba"), stopwatch(), check_sweep([1], [10])))
