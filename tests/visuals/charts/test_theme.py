"""What all charts share: layers that have nothing to show are left out where that is known."""

from __future__ import annotations

import altair as alt
import pytest

from tests.builders import TINY_SHAPE
from visuals.charts.crossover import Crossover, crossover
from visuals.charts.theme import Chart, finished, with_rows_only


def two_layers() -> Chart:
    marks = (alt.Chart(alt.NamedData(name)).mark_point().encode(x="x:Q") for name in ("a", "b"))
    return alt.layer(*marks)


def names(chart: object) -> list[str]:
    assert isinstance(chart, alt.LayerChart)
    return [layer.data.name for layer in chart.layer]


@pytest.mark.parametrize(
    ("datasets", "left"),
    [
        ({"a": [{"x": 1}], "b": []}, ["a"]),
        ({"a": [{"x": 1}], "b": [{"x": 2}]}, ["a", "b"]),
        ({"a": [], "b": []}, ["a", "b"]),
        ({"a": [{"x": 1}]}, ["a", "b"]),
    ],
    ids=["one is empty", "none is empty", "all are empty", "one is set from outside"],
)
def test_a_layer_without_rows_is_left_out(
    datasets: dict[str, list[dict[str, float]]], left: list[str]
) -> None:
    """Vega warned of an infinite extent 138 times on one page, and marks had no name."""
    chart = finished(two_layers(), datasets, description="a test")

    assert names(with_rows_only(chart)) == left
    assert names(chart) == ["a", "b"]


def test_a_live_chart_keeps_every_layer() -> None:
    assert names(with_rows_only(finished(two_layers(), None, description="a test"))) == ["a", "b"]


def test_no_layer_filters_its_rows_away() -> None:
    """A filter that leaves nothing is an empty layer that nobody sees coming."""
    chart = crossover(Crossover(shape=TINY_SHAPE))

    assert [layer for layer in chart.to_dict()["layer"] if "transform" in layer] == []
