"""The self-check in words: the table, and the badge for every state it can be in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.records.checks import CheckKind, CheckOutcome, SelfCheck
from tests.checks import BEGUN, FAILED, PASSED, WRONG
from visuals.charts.self_check import NAMES, WHY, badge, made_words, table_html

IMPOSSIBLE = replace(WRONG, outcome=CheckOutcome.IMPOSSIBLE)
LATE = replace(IMPOSSIBLE, is_late=True)


@pytest.mark.parametrize(
    ("check", "sentence", "is_going", "expected"),
    [
        (None, "", False, ("none", "")),
        (None, "", True, ("going", "being checked here, 0 of 6")),
        (replace(BEGUN, checks=PASSED.checks), "", True, ("going", "being checked here, 1 of 6")),
        (PASSED, "", False, ("passed", "checked here: ids")),
        (FAILED, "", False, ("differs", "differs here: ids")),
        (replace(FAILED, is_whole=False), "", True, ("differs", "differs here: ids")),
        (BEGUN, "no room", False, ("failed", "not checked here: no room")),
        (replace(PASSED, checks=(LATE,)), "", False, ("failed", "not all checked here yet")),
        (
            replace(PASSED, checks=(*PASSED.checks, LATE)),
            "",
            False,
            ("failed", "not all checked here yet: only ids"),
        ),
        (replace(PASSED, checks=(IMPOSSIBLE,)), "", False, ("failed", "not checked here")),
    ],
)
def test_the_badge_says_what_is_known(
    check: SelfCheck | None, sentence: str, is_going: bool, expected: tuple[str, str]
) -> None:
    assert badge(check, sentence, is_going=is_going) == expected


def test_the_table_has_a_row_for_each_check_with_its_result_and_tolerance() -> None:
    html = table_html(FAILED)

    assert html.count("<tr>") == 2
    assert '<td class="differs">\u2717 differs</td>' in html
    assert "The ids, with those of generate." in html
    assert "3 of 8 ids are the same." in html
    assert '<td data-label="Tolerance">all the same</td>' in html


def test_what_there_was_no_time_for_is_not_called_impossible() -> None:
    html = table_html(replace(PASSED, checks=(LATE,)))

    assert "not done yet" in html
    assert "not possible here" not in html


def test_nothing_in_the_table_is_markup_but_its_own() -> None:
    html = table_html(replace(FAILED, checks=(replace(WRONG, found="<b>", reason="<i>"),)))

    assert "&lt;b&gt;. &lt;i&gt;." in html


def test_every_kind_of_check_has_a_name_and_a_why() -> None:
    assert set(NAMES) == set(WHY) == set(CheckKind)


def test_a_check_says_when_where_and_with_what_it_was_made() -> None:
    assert made_words(replace(PASSED, took_s=2.0)) == (
        "tiny in float32 on a machine; torch 2.13.0, attention sdpa; checked on 2 January 2026 "
        "(UTC) in 2.0 s of quiet time. Computed with the library alone."
    )
