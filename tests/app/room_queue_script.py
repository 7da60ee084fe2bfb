"""The queue of a room on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.room_queue import room_queue

if __name__ == "__main__":  # not in a process spawned by what the page shows
    room_queue(STAGE.under_test.hub, "visitor-one")
