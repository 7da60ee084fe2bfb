"""The engine process's measurements: what is swept, what is reported, and how a stop is heard."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

import pytest

from inference.calibration.timings import Stopwatch
from inference.calibration.token_sweep import sweep_tokens
from inference.process.measurements import STOPPED, Surveyor
from inference.process.messages import MeasureEnded, Reply, Shutdown, StopMeasuring, SweepTokens
from inference.records.rooflines import TokenTiming
from tests.doubles import ScriptedBackend, ScriptedClock, ScriptedDelays

SWEEP = SweepTokens(counts=(1, 4))


def stopwatch(*seconds: float, lost_s: Sequence[float] = ()) -> Stopwatch:
    """Return one whose timings are scripted, and of them what other programs took."""
    shares = iter(lost_s)
    return Stopwatch(ScriptedClock(seconds), lambda: ScriptedDelays(next(shares, 0.0)))


@pytest.fixture
def pipe() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = multiprocessing.Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_each_number_of_tokens_has_its_best_median_and_worst_step_time() -> None:
    watch = stopwatch(9.0, 0.3, 0.1, 0.2, 9.0, 0.8, 0.4, 0.6)

    points = sweep_tokens(ScriptedBackend(50), watch, (1, 4))

    assert points is not None
    assert points[0] == TokenTiming(
        tokens=1,
        best_s=pytest.approx(0.1),
        median_s=pytest.approx(0.2),
        worst_s=pytest.approx(0.3),
        repeats=3,
    )
    assert points[1].tokens_per_s == pytest.approx(4 / 0.6)


def test_a_disturbed_step_of_a_sweep_is_measured_again() -> None:
    watch = stopwatch(9.0, 0.5, 0.2, 0.3, 0.1, 9.0, 0.6, 0.6, 0.6, lost_s=[0.0, 0.4, 0.0, 0.0, 0.0])

    points = sweep_tokens(ScriptedBackend(50), watch, (1, 4))

    assert points is not None
    assert (points[0].best_s, points[0].median_s, points[0].worst_s) == pytest.approx(
        (0.1, 0.2, 0.3)
    )
    assert not points[0].is_disturbed


def test_a_step_that_is_always_disturbed_is_measured_four_times_over_and_says_so() -> None:
    watch = stopwatch(*[0.4] * 100, lost_s=[0.3] * 100)

    points = sweep_tokens(ScriptedBackend(50), watch, (1,))

    assert points is not None
    assert (points[0].repeats, points[0].is_disturbed) == (12, True)


def test_a_step_of_few_tokens_that_takes_longer_than_one_of_more_is_measured_again() -> None:
    """One token at 34 ms and four at 20 cannot be: reading the weights is in both."""
    watch = stopwatch(*[0.9] * 4, *[0.5] * 4, *[0.4] * 4)

    points = sweep_tokens(ScriptedBackend(50), watch, (1, 4))

    assert points is not None
    assert [one.median_s for one in points] == pytest.approx([0.4, 0.5])


def test_progress_grows_and_names_what_is_measured() -> None:
    told: list[tuple[float, str]] = []
    watch = stopwatch(*[0.1] * 8)

    sweep_tokens(ScriptedBackend(50), watch, (1, 4), lambda *what: told.append(what))

    ratios = [ratio for ratio, _ in told]
    assert ratios == sorted(ratios)
    assert (ratios[0], ratios[-1]) == (0.0, 1.0)
    assert told[1][1] == "steps of 4 tokens"


def test_a_sweep_that_is_stopped_gives_nothing() -> None:
    answers = iter([False, False, True])

    points = sweep_tokens(
        ScriptedBackend(50), stopwatch(*[0.1] * 8), (1, 4), should_stop=lambda: next(answers)
    )

    assert points is None


def test_without_a_model_there_is_nothing_to_sweep(pipe: tuple[Connection, Connection]) -> None:
    replies: list[Reply] = []
    surveyor = Surveyor(pipe[1], replies.append)

    surveyor.measure(SWEEP, None, ScriptedClock())

    [ended] = replies
    assert isinstance(ended, MeasureEnded)
    assert "no model is loaded" in ended.sentence


def test_a_stop_ends_the_measurement_and_other_commands_are_kept_for_later(
    pipe: tuple[Connection, Connection],
) -> None:
    replies: list[Reply] = []
    surveyor = Surveyor(pipe[1], replies.append)
    pipe[0].send(SWEEP)
    pipe[0].send(StopMeasuring())

    assert surveyor._should_stop()
    assert surveyor.later == [SWEEP]


def test_the_end_of_the_process_ends_the_measurement_too(
    pipe: tuple[Connection, Connection],
) -> None:
    surveyor = Surveyor(pipe[1], lambda _reply: None)
    pipe[0].send(Shutdown())

    assert surveyor._should_stop()
    assert surveyor.later == [Shutdown()]


def test_the_end_of_a_stopped_measurement_says_so() -> None:
    assert STOPPED.ceilings is None
    assert STOPPED.sweep is None
    assert "stopped" in STOPPED.sentence
