"""Every page behind one navigation, as AppTest runs it: what is typed outlives a switch."""

from __future__ import annotations

from inference.counting.shape_jobs import app_shape_jobs
from tests.app.stage import STAGE
from visuals.pages.batching import batching_page
from visuals.pages.compare import compare_page
from visuals.pages.device import device_page
from visuals.pages.live import live_page
from visuals.pages.playlists import playlists_page
from visuals.pages.roofline import roofline_page
from visuals.pages.runs import WaysOut, runs_page
from visuals.pages.self_check import self_check_page
from visuals.pages.serving import serving_page
from visuals.pages.tour import tour_page

HUB = STAGE.under_test.hub


def stay(_keys: object = None) -> None:
    """Stand in for the ways to other pages."""


PAGES = {
    "tour": lambda: tour_page(HUB),
    "live": lambda: live_page(HUB, STAGE.endpoint_runs),
    "compare": lambda: compare_page(HUB, STAGE.groups, STAGE.store),
    "roofline": lambda: roofline_page(HUB, app_shape_jobs()),
    "batching": lambda: batching_page(HUB),
    "serving": lambda: serving_page(HUB, STAGE.watches, STAGE.endpoint_runs, STAGE.loads),
    "device": lambda: device_page(HUB),
    "runs": lambda: runs_page(
        HUB, STAGE.store, STAGE.endpoint_runs.store, WaysOut(compare=stay, live=stay, recorded=stay)
    ),
    "playlists": lambda: playlists_page(HUB, STAGE.store, STAGE.playlists),
    "check": lambda: self_check_page(HUB),
    "none": lambda: None,
}

if __name__ == "__main__":  # not in a process spawned by what the page shows
    PAGES[STAGE.page]()
