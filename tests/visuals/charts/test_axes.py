"""Axes that grow in steps, and thinned histories."""

from __future__ import annotations

import pytest

from visuals.charts.axes import (
    axis_end,
    end_without_outliers,
    medians,
    nice_end,
    picked,
    stride_for,
)
from visuals.charts.theme import Row


@pytest.mark.parametrize(
    ("largest", "end"),
    [(0, 16), (16, 16), (17, 24), (25, 32), (33, 48), (2020, 2048), (8193, 12288)],
)
def test_an_axis_ends_at_the_next_step(largest: int, end: int) -> None:
    assert axis_end(largest) == end


@pytest.mark.parametrize(
    ("largest", "end"), [(0, 1.0), (93.0, 100.0), (96.0, 150.0), (210.0, 300.0)]
)
def test_an_axis_of_values_leaves_room_above_the_largest(largest: float, end: float) -> None:
    assert nice_end(largest) == pytest.approx(end)


def test_a_stride_is_a_power_of_two_so_that_groups_stay_put() -> None:
    assert [stride_for(count, 800) for count in (0, 800, 801, 5000)] == [1, 1, 2, 8]


def test_thinned_rows_keep_all_series_of_a_step_and_the_newest_step() -> None:
    rows: list[Row] = [{"k": k, "band": band} for k in range(1001) for band in range(2)]

    thinned = picked(rows, 800)

    assert len(thinned) <= 802
    assert thinned[-1] == {"k": 1000, "band": 1}
    assert {row["band"] for row in thinned if row["k"] == thinned[0]["k"]} == {0, 1}


def test_groups_of_steps_show_their_median_and_leave_cold_steps_apart() -> None:
    rows: list[Row] = [
        {"k": k, "from": k - 0.45, "to": k + 0.45, "ms": float(k), "kind": "warm"} for k in range(8)
    ]
    rows[1]["kind"] = "cold"

    groups = medians(rows, "ms", limit=2)

    assert groups[0] == {"k": 0, "from": -0.45, "to": 3.45, "ms": 2.0, "kind": "warm"}
    assert groups[1]["kind"] == "cold"
    assert groups[2]["ms"] == 5.5


def test_few_rows_are_left_as_they_are() -> None:
    rows: list[Row] = [{"k": 0, "from": 0, "to": 1, "ms": 2.0, "kind": "warm"}]

    assert medians(rows, "ms") == rows
    assert picked(rows) == rows
    assert picked([]) == []


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ([], 1.0),
        ([50.0] * 3 + [5000.0], 8000.0),  # too few to call one an outlier
        ([50.0] * 19 + [5000.0], 80.0),
        ([50.0] * 19 + [190.0], 200.0),  # longer, and still readable beside the others
        ([50.0] * 10 + [5000.0] * 10, 8000.0),  # half of them are no outliers
    ],
    ids=["none", "few", "one outlier", "one longer", "two kinds"],
)
def test_an_axis_leaves_out_what_would_flatten_the_rest(values: list[float], end: float) -> None:
    assert end_without_outliers(values) == end
