"""The line through measured points: its numbers, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from inference.figures.fitted_lines import fitted_line


def test_the_line_is_that_of_least_squares_with_the_error_of_its_slope() -> None:
    points = [(1.0, 3.0), (2.0, 5.5), (3.0, 6.5), (4.0, 9.0), (4.0, 9.5)]

    line = fitted_line(points)

    xs, ys = np.array(points).T
    (slope, intercept), covariance = np.polyfit(xs, ys, 1, cov=True)
    assert line is not None
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    assert line.slope_error == pytest.approx(np.sqrt(covariance[0, 0]))
    assert line.is_borne_out


@pytest.mark.parametrize(
    "places", [[], [1, 1], [1, 2], [1, 2, 3, 3, 3]], ids=["none", "one", "two", "three"]
)
def test_points_at_fewer_than_four_places_make_no_line(places: list[float]) -> None:
    """Two prompt lengths were given out as a law: TTFT = -165 ms x prompt tokens + 7,460 ms."""
    assert fitted_line([(x, 2 * x + number) for number, x in enumerate(places)]) is None


def test_a_slope_smaller_than_its_error_is_not_borne_out() -> None:
    line = fitted_line([(1, 5), (2, 9), (3, 4), (4, 6)])

    assert line is not None
    assert line.slope_error > abs(line.slope)
    assert not line.is_borne_out
