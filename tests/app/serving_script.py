"""The Serving page, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.serving import serving_page

if __name__ == "__main__":  # not in a process spawned by what the page shows
    serving_page(
        STAGE.under_test.hub,
        STAGE.watches,
        STAGE.endpoint_runs,
        STAGE.loads,
        is_watching=STAGE.is_watching,
    )
