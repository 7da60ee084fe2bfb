"""The entry: `streamlit run app.py` serves the pages and the live route, and owns the engine."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import AsyncGenerator

import streamlit as st
from starlette.middleware import Middleware

from inference.models.process_memory import limit_growth
from inference.process.messages import LoadModel
from inference.process.telemetry import machine_busy_ratio
from inference.records.errors import InputError
from visuals.live.access import AccessGate, is_loopback, links
from visuals.live.app_services import (
    app_fair_use,
    app_hub,
    app_keys,
    app_presenting,
    app_saver,
    app_shares,
    app_templates,
)
from visuals.live.attention_route import attention_routes
from visuals.live.check_route import check_routes
from visuals.live.engine_route import engine_routes
from visuals.live.guards import (
    ContentPolicy,
    HostGuard,
    OriginGuard,
    named_hosts,
    own_address,
    own_names,
)
from visuals.live.page_addresses import page_routes
from visuals.live.present_route import present_routes
from visuals.live.proxies import check_proxies
from visuals.live.roofs_route import roofs_routes
from visuals.live.route import live_routes
from visuals.live.server_route import server_routes
from visuals.live.vega_bundle import bundle
from visuals.panel.routes import panel_routes
from visuals.panel.watcher_messages import WatcherMessages

SAVING_GRACE_S = 5.0  # to write what the runs have gained
RESERVED_BYTES = 2 << 30  # asked for and never used: stacks of threads, pyarrow's allocator
ADDRESS = st.get_option("server.address") or ""
try:
    check_proxies()
    KEYS = app_keys(ADDRESS)
    FAIR_USE = app_fair_use()
    MEMORY = app_shares()
except InputError as error:
    sys.exit(f"error: {error}")


@contextlib.asynccontextmanager
async def engine_lifespan(_app: st.App) -> AsyncGenerator[None]:
    """Load the default model while the first page opens; end the engine with the server."""
    if MEMORY.app_bytes is not None:
        limit_growth(MEMORY.app_bytes + RESERVED_BYTES)
    hub = app_hub()
    stop = threading.Event()
    threading.Thread(
        target=hub.keep_house, args=(stop, machine_busy_ratio), name="hub-house", daemon=True
    ).start()
    saving = threading.Thread(
        target=app_saver().keep, args=(hub, stop), name="run-saver", daemon=True
    )
    saving.start()
    threading.Thread(target=bundle, name="vega-bundle", daemon=True).start()
    app_templates().start()
    hub.preload(LoadModel(model="default"))
    if KEYS is not None:
        url = f"http://{own_address(ADDRESS)}:{st.get_option('server.port')}"
        print(f"\n{links(KEYS, url)}", flush=True)  # noqa: T201  the one place that shows a key
    try:
        yield
    finally:
        stop.set()
        saving.join(SAVING_GRACE_S)
        hub.close()
        app_templates().close()


routes = [
    *live_routes(app_hub()),
    *attention_routes(app_hub()),
    *engine_routes(app_hub()),
    *check_routes(app_hub()),
    *roofs_routes(app_hub()),
    *server_routes(app_hub()),
    *present_routes(app_presenting()),
    *panel_routes(),
    *page_routes(),
]
app = st.App(
    "visuals/pages/main.py",
    routes=routes,
    middleware=[
        Middleware(
            HostGuard,
            address=ADDRESS,
            named=named_hosts() if is_loopback(ADDRESS) else (*named_hosts(), *own_names()),
        ),
        Middleware(ContentPolicy),
        Middleware(OriginGuard),
        Middleware(AccessGate, keys=KEYS, take_upload=FAIR_USE.take_upload),
        Middleware(WatcherMessages),
    ],
    lifespan=engine_lifespan,
)
