"""The Tour on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.tour import tour_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    tour_page(STAGE.under_test.hub)
