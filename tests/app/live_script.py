"""The Live page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.live import live_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    live_page(STAGE.under_test.hub, STAGE.endpoint_runs)
