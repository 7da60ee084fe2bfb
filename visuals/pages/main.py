"""The page script that streamlit runs: the navigation and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from inference.counting.shape_jobs import app_shape_jobs
from visuals.live.access import Role
from visuals.live.app_services import (
    app_endpoint_runs,
    app_hub,
    app_load_runs,
    app_playlists,
    app_presenting,
    app_saver,
    app_serving_watches,
    app_store,
)
from visuals.live.check_route import CHECK_PAGE
from visuals.pages.batching import batching_page
from visuals.pages.compare import compare_page
from visuals.pages.current_item import ITEM, PLAYLIST, SHIPPED_LIST
from visuals.pages.device import device_page
from visuals.pages.examples import ASSETS
from visuals.pages.late_values import keep_late_values
from visuals.pages.live import live_page
from visuals.pages.playlists import playlists_page
from visuals.pages.roofline import roofline_page
from visuals.pages.room_queue import room_queue
from visuals.pages.runs import WaysOut, runs_page
from visuals.pages.self_check import self_check_page
from visuals.pages.serving import serving_page
from visuals.pages.tour import tour_page
from visuals.pages.visitor import visitor_groups, visitor_hub, visitor_name, visitor_role
from visuals.pages.watch import watch_page
from visuals.panel.server_line import server_line
from visuals.panel.term_marks import term_marks

STYLE = Path(__file__).parent / "pages.css"


def show_tour() -> None:
    """Show the Tour on the app's hub."""
    tour_page(visitor_hub())


def show_watch() -> None:
    """Show the Live page as those see it who may only watch."""
    watch_page(visitor_hub(), app_presenting())


def show_live() -> None:
    """Show the Live page on the app's hub."""
    hub = visitor_hub()
    live_page(hub, app_endpoint_runs())
    if name := visitor_name():
        room_queue(hub, name)


def show_compare() -> None:
    """Show the Compare page on the app's hub and store."""
    compare_page(visitor_hub(), visitor_groups(), app_store())


def show_roofline() -> None:
    """Show the Roofline page on the app's hub."""
    roofline_page(app_hub(), app_shape_jobs())


def show_batching() -> None:
    """Show the Batching page on the app's hub."""
    batching_page(visitor_hub())


def show_serving() -> None:
    """Show the Serving page on the app's watches of engines elsewhere and its loads."""
    is_watching = visitor_role() is Role.WATCH
    serving_page(
        app_hub(),
        app_serving_watches(),
        app_endpoint_runs(),
        app_load_runs(),
        is_watching=is_watching,
    )


def show_device() -> None:
    """Show the Device page on the app's hub."""
    device_page(app_hub())


def show_self_check() -> None:
    """Show the Self-check page on the app's hub."""
    self_check_page(app_hub())


def show_runs() -> None:
    """Show the Runs page on the app's hub and store."""
    saver = app_saver()
    saver.keep_once(app_hub())  # a run that has just ended is on the list
    runs_page(
        app_hub(),
        app_store(),
        app_endpoint_runs().store,
        WaysOut(compare=_compare, live=_live, recorded=_play_recorded),
        saver.problem,
    )


def show_playlists() -> None:
    """Show the Playlists page on the app's hub and stores."""
    playlists_page(app_hub(), app_store(), app_playlists())


def _compare(keys: Sequence[str]) -> None:
    st.switch_page(COMPARE, query_params={"runs": ",".join(keys)})


def _live() -> None:
    st.switch_page(LIVE)


def _play_recorded() -> None:
    st.switch_page(PLAYLISTS, query_params={PLAYLIST: SHIPPED_LIST, ITEM: "1"})


LIVE = st.Page(show_live, title="Live", url_path="live", default=True)
PLAYLISTS = st.Page(show_playlists, title="Playlists", url_path="playlists")
COMPARE = st.Page(show_compare, title="Compare", url_path="compare")


def main() -> None:
    """Show the page that the address names."""
    keep_late_values()
    st.set_page_config(
        page_title="Token by Token", page_icon=str(ASSETS / "icon.svg"), layout="wide"
    )
    st.html(STYLE)
    st.logo(str(ASSETS / "logo.svg"), size="large")
    server_line(app_hub())
    is_watching = visitor_role() is Role.WATCH
    term_marks(has_tour=not is_watching)
    if is_watching:
        # No other page, so that no widget is there whose press could change anything.
        st.navigation([st.Page(show_watch, title="Live", url_path="live", default=True)]).run()
        return
    app_hub().used()
    st.navigation(
        [
            st.Page(show_tour, title="Tour", url_path="tour"),
            LIVE,
            COMPARE,
            st.Page(show_roofline, title="Roofline", url_path="roofline"),
            st.Page(show_batching, title="Batching", url_path="batching"),
            st.Page(show_serving, title="Serving", url_path="serving"),
            st.Page(show_device, title="Device", url_path="device"),
            st.Page(show_runs, title="Runs", url_path="runs"),
            PLAYLISTS,
            st.Page(show_self_check, title="Self-check", url_path=CHECK_PAGE),
        ],
        position="top",
    ).run()


# A spawned process (the engine, a shape job, the templates) imports the script that runs here under
# another name; it must not draw a page, nor make a hub.
if __name__ == "__main__":
    main()
