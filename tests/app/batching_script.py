"""The Batching page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.batching import batching_page

batching_page(STAGE.under_test.hub)
