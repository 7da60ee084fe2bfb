"""The Device page on a scripted engine, as AppTest runs it."""

from __future__ import annotations

from tests.app.stage import STAGE
from visuals.pages.device import device_page

device_page(STAGE.under_test.hub)
