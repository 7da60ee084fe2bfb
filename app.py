"""The entry: `streamlit run app.py` serves the pages and the live route, and owns the engine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncGenerator

import streamlit as st

from inference.messages import LoadModel
from visuals.live.hub import app_hub
from visuals.live.route import live_routes
from visuals.live.vega import bundle


@contextlib.asynccontextmanager
async def engine_lifespan(_app: st.App) -> AsyncGenerator[None]:
    """Load the default model while the first page opens; end the engine with the server."""
    hub = app_hub()
    stop = threading.Event()
    threading.Thread(target=hub.keep_house, args=(stop,), name="hub-house", daemon=True).start()
    threading.Thread(target=bundle, name="vega-bundle", daemon=True).start()
    hub.preload(LoadModel(model="default"))
    try:
        yield
    finally:
        stop.set()
        hub.close()


app = st.App("visuals/pages/main.py", routes=live_routes(app_hub()), lifespan=engine_lifespan)
