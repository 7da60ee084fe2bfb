"""What the panel is given for presenter mode."""

from __future__ import annotations

from visuals.live.viewer_link import ViewerLink
from visuals.panel.component import EXPLANATIONS
from visuals.panel.stage import presenter_stage, qr_rows, viewer_stage
from visuals.words.presenter import IDEAS

KEYS_OF_NUMBERS = 9
LONGEST = 85  # characters in a line that is to be read from the back of a room
FINDER = ("1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111")


def test_every_panel_has_a_number_and_an_idea() -> None:
    assert set(IDEAS) == set(EXPLANATIONS)
    assert len(IDEAS) <= KEYS_OF_NUMBERS


def test_an_idea_fits_into_a_line() -> None:
    long = [
        words
        for idea in IDEAS.values()
        for words in (idea.prefill, idea.decode)
        if len(words) > LONGEST
    ]

    assert long == []


def test_a_code_is_a_square_with_three_finders() -> None:
    rows = qr_rows("http://10.0.0.7:8501/?key=" + 64 * "a" + "&watch=1")

    assert {len(row) for row in rows} == {len(rows)}
    assert set("".join(rows)) == {"0", "1"}
    for across, down in ((0, 0), (len(rows) - 7, 0), (0, len(rows) - 7)):
        assert tuple(row[across : across + 7] for row in rows[down : down + 7]) == FINDER


def test_a_link_that_nobody_else_can_open_has_no_code() -> None:
    there = presenter_stage(is_on=True, link=ViewerLink(url="http://10.0.0.7/"))["link"]
    here = presenter_stage(is_on=True, link=ViewerLink(url="http://127.0.0.1/", note="why"))["link"]

    assert isinstance(there, dict)
    assert there["code"]
    assert here == {"url": "http://127.0.0.1/", "note": "why", "code": []}


def test_a_viewer_is_given_no_link() -> None:
    assert viewer_stage(is_on=True)["link"] is None
