"""The panels' names and titles are those of the browser's side."""

from __future__ import annotations

import re

from visuals.live.page_bench import ROOT
from visuals.panel.component import EXPLANATIONS
from visuals.words.panels import PANEL_TITLES

MADE = re.compile(r'makePanel\("(\w+)", "([^"]+)"')


def test_every_panel_has_the_title_that_the_browser_shows() -> None:
    scripts = (ROOT / "visuals" / "panel" / "scripts").glob("*.js")
    shown = dict(pair for path in scripts for pair in MADE.findall(path.read_text("utf-8")))

    assert shown == PANEL_TITLES
    assert set(PANEL_TITLES) == set(EXPLANATIONS)
