"""The page of a watcher on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.live.watching import WatchingHub
from visuals.pages.watch import watch_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    watch_page(WatchingHub(STAGE.under_test.hub), STAGE.presenting)
