"""The Compare page on a scripted engine and a store of its own, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.compare import compare_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    compare_page(STAGE.under_test.hub, STAGE.groups, STAGE.store)
