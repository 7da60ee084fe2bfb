"""The Playlists page on a scripted engine and stores of its own, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.playlists import playlists_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    playlists_page(STAGE.under_test.hub, STAGE.store, STAGE.playlists)
