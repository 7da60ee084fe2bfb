"""Legends list what is drawn."""

from __future__ import annotations

from typing import Any

from visuals.charts.legends import with_present_legends


def layer(name: str, *, has_legend: bool = True) -> dict[str, Any]:
    colour: dict[str, Any] = {"field": "kind", "scale": {"domain": ["warm", "cold", "observed"]}}
    if not has_legend:
        colour["legend"] = None
    return {"data": {"name": name}, "mark": "bar", "encoding": {"color": colour}}


def test_a_legend_has_the_values_of_all_layers_rows_and_no_others() -> None:
    """A report of one run had legends of series that it does not have."""
    rows = {"a": [{"kind": "observed"}], "b": [{"kind": "warm"}]}
    spec = with_present_legends({"layer": [layer("a"), layer("b")], "datasets": rows})

    legends = [one["encoding"]["color"]["legend"]["values"] for one in spec["layer"]]
    assert legends == [["warm", "observed"]] * 2


def test_what_has_no_legend_gets_none_and_an_unknown_one_stays() -> None:
    rows = {"a": [{"kind": "warm"}], "b": [{"other": 1}]}
    hidden, unknown = layer("a", has_legend=False), layer("b")
    hidden_spec = with_present_legends({"layer": [hidden], "datasets": rows})
    unknown_spec = with_present_legends({"layer": [unknown], "datasets": rows})

    assert hidden_spec["layer"][0]["encoding"]["color"]["legend"] is None
    assert "legend" not in unknown_spec["layer"][0]["encoding"]["color"]
