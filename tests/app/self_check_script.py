"""The Self-check page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.self_check import self_check_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    self_check_page(STAGE.under_test.hub)
