"""What drawing a run costs its page: processor time of the browser's main thread for each frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

LEAST_FRAMES = 5
SETTLING_FRAMES = 3  # the first has the whole prompt, and the charts are made


class DrawingMeter:
    """Reads a page's main thread while frames come; only in Chromium."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        # Processor time, so that what else the machine does is not in it.
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._readings: list[tuple[int, float]] = []

    def note(self, frames: int) -> None:
        """Read the clock of the main thread after this many frames."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        busy_s = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
        self._readings.append((frames, busy_s))

    def ms_per_frame(self) -> float | None:
        """Return the milliseconds a frame took, at the run's newest length; None for too few."""
        return ms_per_frame(self._readings)


def ms_per_frame(readings: list[tuple[int, float]]) -> float | None:
    """Return the milliseconds a frame of the second half took.

    Args:
        readings: Frames so far, and the main thread's seconds, as they grew.
    """
    if not readings:
        return None
    last, end_s = readings[-1]
    middle = max(readings[0][0] + SETTLING_FRAMES, (readings[0][0] + last) / 2)
    before = [reading for reading in readings if reading[0] >= middle]
    if not before or last - before[0][0] < LEAST_FRAMES:
        return None
    first, start_s = before[0]
    return (end_s - start_s) / (last - first) * 1e3
