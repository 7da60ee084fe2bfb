"""Every panel's help says the same things in the same order, and leaves none out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from visuals.panel import contents

PARTS = ("what", "read", "how", "formula", "source")
PANEL = Path(contents.__file__).parent / "scripts" / "elements.js"
PROSE = ("what", "read", "how")


@pytest.mark.parametrize("name", contents.EXPLANATIONS)
def test_help_says_what_it_is_how_to_read_it_and_where_the_numbers_come_from(name: str) -> None:
    explanation = contents.EXPLANATIONS[name]

    assert tuple(explanation) == PARTS
    for part in PROSE:
        assert explanation[part].endswith("."), part
        assert explanation[part].count("  ") == 0, part
    assert explanation["formula"]


def test_the_panel_shows_the_parts_in_their_order() -> None:
    shown = re.findall(r"\[\"[^\"]+\", explanation\?\.(\w+)\]", PANEL.read_text(encoding="utf-8"))

    assert tuple(shown) == PARTS


def test_no_help_is_cut() -> None:
    style = (PANEL.parents[1] / "styles" / "panels.css").read_text(encoding="utf-8")
    rule = style.split("\n.more {")[1].split("}")[0]

    assert "max-height" not in rule
    assert "overflow" not in rule
