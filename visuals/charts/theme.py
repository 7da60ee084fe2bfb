"""Colours by meaning, the same on every page, and what all charts share.

The hues are those of the Okabe-Ito set, which readers with any form of colour blindness can tell
apart. Charts set no text or grid colour: the page's theme, light or dark, does. No page, no torch.

Source:
    Okabe and Ito 2008, "Color Universal Design", palette of eight colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import altair as alt
import pandas as pd

# Altair asks for pandas without importing it, and would meet one that another thread is half-way
# through importing; importing it here waits for that to be whole.
TABLES = pd

PREFILL = "#0072B2"
DECODE = "#D55E00"
KV = "#009E73"
WEIGHTS = "#CC79A7"
HOST = "#707070"
HOST_LIGHT = "#B4B4B4"
ROOF = "#7A7A7A"  # reads on both grounds, as text too
MEMORY = "#56B4E9"
GPU = "#E69F00"

PHASE_COLOURS = {"prefill": PREFILL, "decode": DECODE}
BAND_COLOURS = ("#00543D", "#007455", "#009E73", "#3DB994", "#7ED0B6", "#BDE6D8")

SOLID: tuple[int, ...] = (1, 0)
DASHED: tuple[int, ...] = (5, 3)
DOTTED: tuple[int, ...] = (1, 3)
DASH_DOTTED: tuple[int, ...] = (6, 3, 1, 3)
PROVENANCE_DASHES = {
    "measured": SOLID,
    "counted": DASHED,
    "datasheet": DOTTED,
    "entered": DASH_DOTTED,
}

Cell: TypeAlias = float | str | None
Row: TypeAlias = dict[str, Cell]
Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart


def whole_numbers() -> alt.Axis:
    """Return an axis of steps or layers: labels at whole numbers only, no grid."""
    label = "datum.value % 1 ? '' : format(datum.value, ',d')"
    return alt.Axis(labelExpr=label, tickMinStep=1, tickCount=5, grid=False, ticks=False)


def decades(label: str) -> alt.Axis:
    """Return a logarithmic axis with a label and a line at each power of ten only.

    Args:
        label: Vega expression of a label, of ``datum.value``.
    """
    is_power = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
    return alt.Axis(
        labelExpr=f"{is_power} ? {label} : ''",
        gridOpacity=alt.condition(is_power, alt.value(0.9), alt.value(0)),
        tickOpacity=alt.condition(is_power, alt.value(1), alt.value(0)),
    )


def within_decades(label: str) -> alt.Axis:
    """Return a logarithmic axis for values that span few powers of ten.

    Within any doubling there are two labels or more, where they do not overlap.

    Args:
        label: Vega expression of a label, of ``datum.value``.
    """
    values = [step * 10.0**power for power in range(-3, 7) for step in (1, 1.5, 2, 3, 4, 6, 8)]
    return alt.Axis(values=values, labelExpr=label, labelOverlap="greedy", gridOpacity=0.9)


def finished(chart: Chart, datasets: dict[str, list[Row]] | None, *, description: str) -> Chart:
    """Return the chart at its page size, with its rows where there are any.

    Args:
        chart: Made over named data only, so that its spec does not depend on the rows.
        datasets: Rows by the name of their data; None leaves the data to be set from outside.
        description: What the chart shows, for those who cannot see it.
    """
    sized = chart.properties(
        width="container",
        height=180,
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        description=description,
    )
    return sized if datasets is None else sized.properties(datasets=datasets)


def with_rows_only(chart: Chart) -> Chart:
    """Return the chart without the layers whose data is empty; unchanged where all are.

    For a chart that is drawn once: of an empty layer Vega warns that its extent is infinite, a
    legend lists what is not drawn, and a screen reader meets marks without a name.
    """
    datasets: object = chart.datasets
    if not isinstance(chart, alt.LayerChart) or not isinstance(datasets, dict):
        return chart
    kept = [layer for layer in chart.layer if _has_rows(layer, datasets)]
    if not kept or len(kept) == len(chart.layer):
        return chart
    fewer = chart.copy(deep=False)
    fewer.layer = kept
    return fewer


def _has_rows(layer: object, datasets: Mapping[str, object]) -> bool:
    name = getattr(getattr(layer, "data", None), "name", None)
    return not isinstance(name, str) or bool(datasets.get(name, True))
