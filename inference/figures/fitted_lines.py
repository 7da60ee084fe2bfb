"""A straight line through measured points, and whether the points bear one out. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

LEAST_PLACES = 4  # two points always lie on a line, and three nearly always close to one


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLine:
    """The least squares line through some points.

    Attributes:
        slope_error: Standard error of the slope, in its unit.
    """

    slope: float
    intercept: float
    slope_error: float

    @property
    def is_borne_out(self) -> bool:
        """True where the slope is larger than its standard error, so the line says something."""
        return abs(self.slope) > self.slope_error


def fitted_line(points: Sequence[tuple[float, float]]) -> FittedLine | None:
    """Return the least squares line; None for points at fewer than four different x.

    Source:
        Ordinary least squares with one regressor: slope = cov(x, y) / var(x); standard error of
        the slope = sqrt(sum of squared residuals / (n - 2) / sum of (x - mean)^2).
    """
    if len({x for x, _ in points}) < LEAST_PLACES:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    intercept = mean_y - slope * mean_x
    residuals = sum((y - slope * x - intercept) ** 2 for x, y in points)
    error = sqrt(residuals / (len(points) - 2) / spread)
    return FittedLine(slope=slope, intercept=intercept, slope_error=error)
