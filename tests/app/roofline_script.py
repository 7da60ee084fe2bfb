"""The Roofline page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from inference.counting.shape_jobs import app_shape_jobs
from tests.app.stage import STAGE
from visuals.pages.roofline import roofline_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    roofline_page(STAGE.under_test.hub, app_shape_jobs())
