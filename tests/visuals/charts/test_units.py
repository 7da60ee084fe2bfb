"""Units and the way numbers are written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from visuals.charts.units import (
    DASH,
    amount,
    capacity,
    counted,
    date_text,
    gibibytes,
    mebibytes,
    milliseconds,
    percent,
    significant,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0.0, "0", id="zero"),
        pytest.param(0.012345, "0.0123", id="small"),
        pytest.param(9.994, "9.99", id="below ten"),
        pytest.param(9.996, "10.0", id="rounded up to ten"),
        pytest.param(92.94, "92.9", id="tens"),
        pytest.param(205.0, "205", id="hundreds"),
        pytest.param(999.6, "1,000", id="rounded up to a thousand"),
        pytest.param(11585.0, "11,600", id="ten thousands"),
        pytest.param(-2.5, "-2.50", id="negative"),
        pytest.param(None, DASH, id="unknown"),
        pytest.param(float("nan"), DASH, id="no number"),
    ],
)
def test_a_number_is_written_with_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_an_unknown_amount_has_no_unit() -> None:
    assert amount(None, "ms") == DASH
    assert amount(205.0, "ms") == "205\u00a0ms"


def test_conversions_keep_none_and_use_binary_capacity() -> None:
    assert milliseconds(0.25) == 250
    assert mebibytes(3 * 2**20) == 3
    assert gibibytes(3 * 2**30) == 3
    assert percent(0.1234) == 12.3
    assert [milliseconds(None), mebibytes(None), gibibytes(None), percent(None)] == [None] * 4


def test_a_noun_is_in_the_plural_unless_there_is_one() -> None:
    assert counted(1, "key") == "1 key"
    assert counted(2020, "key") == "2,020 keys"


def test_a_date_is_written_day_first() -> None:
    assert date_text(datetime(2026, 5, 3, tzinfo=UTC)) == "3 May 2026"


def test_little_memory_is_written_in_mebibytes() -> None:
    """A batch's keys and values stood there as 0.0110 GiB."""
    assert capacity(11.3 * 2**20) == "11.3\u00a0MiB"
    assert capacity(3 * 2**29) == "1.50\u00a0GiB"
    assert capacity(None) == "\u2013"
