"""Who looks at this page, and the hub and groups as that visitor may use them."""

from __future__ import annotations

import streamlit as st

from visuals.live.access import AccessKeys, Role
from visuals.live.app_services import app_fair_use, app_groups, app_hub, app_keys
from visuals.live.fair_use import VisitorHub
from visuals.live.groups import Groups
from visuals.live.hub import Hub
from visuals.live.viewer_link import WATCH_PARAMETER
from visuals.live.watching import WatchingHub


def visitor_role() -> Role:
    """Return what the visitor may do: on a server without keys, everything.

    Whoever opens a viewer's link only watches there, whatever else they may do.
    """
    keys = _keys()
    if st.query_params.get(WATCH_PARAMETER) == "1":
        return Role.WATCH
    if keys is None:
        return Role.OPERATE
    return keys.role_of_cookies(st.context.cookies.to_dict()) or Role.WATCH


def visitor_name() -> str:
    """Return the visitor's name; empty where visitors are not told apart."""
    keys = _keys()
    return keys.visitor_of(st.context.cookies.to_dict()) if keys is not None else ""


def visitor_hub() -> Hub:
    """Return the app's hub as the visitor may use it."""
    if visitor_role() is Role.WATCH:
        return WatchingHub(app_hub())
    name = visitor_name()
    return VisitorHub(app_hub(), app_fair_use(), name) if name else app_hub()


def visitor_groups() -> Groups:
    """Return the app's groups, run on the visitor's hub."""
    return app_groups().on(visitor_hub()) if visitor_name() else app_groups()


def server_keys() -> tuple[AccessKeys | None, str]:
    """Return the server's keys, None where nobody is asked, and where it listens."""
    address = st.get_option("server.address") or ""
    return app_keys(address), address


def _keys() -> AccessKeys | None:
    return server_keys()[0]
