"""Presenter mode on the Live page in AppTest: what the address asks for, what the panel gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.stage import STAGE
from tests.visuals.live_doubles import HubUnderTest
from visuals.pages.presenter import panels_said
from visuals.words.presenter import TOO_MANY_PANELS

pytestmark = pytest.mark.app

SCRIPT = str(Path(__file__).with_name("live_script.py"))


def stage(**asked: str) -> dict[str, Any]:
    """Return what the panel is given on a page with this address."""
    STAGE.under_test = HubUnderTest()
    page = AppTest.from_file(SCRIPT, default_timeout=30)
    for name, value in asked.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    data = [json.loads(each.proto.json) for each in page.get("bidi_component")]
    [found] = [one["stage"] for one in data if "stage" in one]
    assert found["role"] == "presenter"
    return found


def test_a_page_may_present_and_does_not_by_itself() -> None:
    found = stage()

    assert found["on"] is False
    assert found["link"] is None
    assert len(found["ideas"]) == 9


def test_an_address_that_asks_for_it_has_panels_and_the_viewers_link() -> None:
    found = stage(present="1", panels="kv,mask")

    assert (found["on"], found["panels"], found["says"]) == (True, ["kv", "mask"], "")
    assert found["link"]["url"].endswith("/?watch=1")


def test_unknown_panels_in_the_address_are_said_and_the_others_shown() -> None:
    found = stage(present="1", panels="no-such,mask")

    assert found["panels"] == ["mask"]
    assert "no-such" in found["says"]
    assert "roofline" in found["says"]


@pytest.mark.parametrize(
    ("text", "panels", "sentence"),
    [
        ("", (), ""),
        (" mask , kv ,", ("mask", "kv"), ""),
        ("mask,mask,mask", ("mask",), ""),
        ("mask,kv,next", ("mask", "kv"), TOO_MANY_PANELS),
    ],
)
def test_panels_are_said_by_name(text: str, panels: tuple[str, ...], sentence: str) -> None:
    assert panels_said(text) == (panels, sentence)


def test_a_long_name_is_cut_in_what_is_said() -> None:
    panels, sentence = panels_said(",".join(["x" * 5000] * 9))

    assert panels == ()
    assert len(sentence) < 300
