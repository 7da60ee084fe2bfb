"""What sweeps may say: readings that cannot be, and where times turn from flat to growing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from inference.figures.sweeps import impossible, left_disturbed, measured_crossover
from inference.records.rooflines import TokenSweep, TokenTiming
from tests.builders import TINY_DEVICE


def sweep(*medians_s: tuple[int, float], spread: float = 1.0) -> TokenSweep:
    """Return a sweep whose timings lie within a factor on both sides of the median."""
    return TokenSweep(
        model_id="tiny",
        device=TINY_DEVICE,
        measured_at=datetime(2026, 1, 2, tzinfo=UTC),
        points=tuple(
            TokenTiming(tokens=n, best_s=s / spread, median_s=s, worst_s=s * spread, repeats=3)
            for n, s in medians_s
        ),
    )


@pytest.mark.parametrize(
    ("times", "wrong"),
    [
        ([(1, 1.0), (2, 1.0), (4, 2.0)], set()),
        ([(1, 1.0), (2, 0.96)], set()),
        ([(1, 0.145), (2, 0.0927)], {1}),
        ([(1, 1.0), (2, 5.0), (4, 3.0), (8, 0.5)], {1, 2, 4}),
    ],
    ids=["growing", "within the tolerance", "3.1 times from twice the rows", "several"],
)
def test_a_step_longer_than_one_with_more_work_cannot_be(
    times: list[tuple[int, float]], wrong: set[int]
) -> None:
    assert impossible(times) == wrong


@pytest.mark.golden
def test_the_crossover_is_where_the_time_of_one_token_meets_the_highest_rate() -> None:
    """0.08 s at the highest rate of 512 tokens in 1.6 s, which is 320 a second, are 25.6 tokens."""
    found = measured_crossover(sweep((1, 0.08), (8, 0.08), (64, 0.25), (512, 1.6), spread=1.1))

    assert found.tokens == pytest.approx(25.6)
    assert (found.low, found.high) == pytest.approx((25.6 / 1.21, 25.6 * 1.21))
    assert found.reason == ""


def test_timings_over_a_factor_of_thirty_leave_the_crossover_unknown() -> None:
    """It was printed as "Measured: 10 tokens"."""
    found = measured_crossover(sweep((1, 0.08), (512, 1.6), spread=5.5))

    assert found.tokens is None
    assert found.reason == "the timings leave a range of a factor of 915"


def test_a_first_step_that_cannot_be_leaves_the_crossover_unknown() -> None:
    found = measured_crossover(sweep((1, 0.034), (2, 0.02), (512, 1.6)))

    assert found.tokens is None
    assert "longer than one of more tokens" in found.reason


def test_a_disturbed_end_leaves_the_crossover_unknown() -> None:
    clean = sweep((1, 0.08), (512, 1.6))
    noisy = replace(clean, points=(clean.points[0], replace(clean.points[1], is_disturbed=True)))

    assert measured_crossover(clean).tokens is not None
    assert measured_crossover(noisy).tokens is None


def test_points_that_stayed_disturbed_are_counted() -> None:
    assert left_disturbed(0, 4) == ""
    assert left_disturbed(1, 4).startswith("1 of 4 points was disturbed")
    assert left_disturbed(3, 4).startswith("3 of 4 points were disturbed")
