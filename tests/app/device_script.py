"""The Device page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.device import device_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    device_page(STAGE.under_test.hub)
