"""What a decode step costs as the context grows: weights stay, K/V grows; steps measured. No torch.

The bands are the least time that the memory roof allows for reading the weights and one row's K/V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from inference.counting.what_if import decode_cost
from inference.records.costs import Ceilings
from inference.records.model import ModelShape
from visuals.charts.axes import nice_end
from visuals.charts.theme import DECODE, KV, WEIGHTS, Chart, Row, finished
from visuals.charts.units import milliseconds

LONGEST_UNKNOWN = 8192  # tokens drawn of a model that names no maximum
BANDS = ("weights, counted", "K/V, counted")
MEASURED = "step, measured"
_COUNTS = 33  # contexts at which the bands are worked out


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAtContext:
    """A run's decode steps at the context that it came to; seconds, their median."""

    context_tokens: int
    median_s: float
    is_disturbed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCosts:
    """A model on a device, and the steps that were measured on it, one row at a time."""

    shape: ModelShape
    ceilings: Ceilings
    steps: tuple[StepAtContext, ...] = ()

    @property
    def longest(self) -> int:
        """The longest context drawn: the model's own, unless steps went further."""
        known = self.shape.max_position_embeddings or LONGEST_UNKNOWN
        return max([known, *(step.context_tokens for step in self.steps)])


def context_costs(costs: ContextCosts) -> Chart:
    """Return the bands and the points over the context length."""
    legend = alt.Legend(orient="top", title=None, columns=2)
    colour = alt.Color(
        "part:N",
        scale=alt.Scale(domain=[*BANDS, MEASURED], range=[WEIGHTS, KV, DECODE]),
        legend=legend,
    )
    scale = alt.Scale(domain=[0, costs.longest], nice=False)
    x = alt.X(
        "context:Q",
        title="context, tokens (L)",
        scale=scale,
        axis=alt.Axis(format=",d", tickCount=6, grid=False),
    )
    up = alt.Scale(domain=[0, nice_end(_highest_s(costs) * 1e3)], nice=False)
    tooltip = [
        alt.Tooltip("context:Q", title="context, tokens", format=",d"),
        alt.Tooltip("part:N", title=" "),
        alt.Tooltip("ms:Q", format=".4~g"),
        alt.Tooltip("note:N", title="undisturbed"),
    ]
    bands = (
        alt.Chart(alt.NamedData("context_bands"))
        .mark_area(opacity=0.75)
        .encode(
            x=x,
            y=alt.Y("ms:Q", title="ms per decode step", stack="zero", scale=up),
            color=colour,
            order=alt.Order("position:Q"),
            tooltip=tooltip,
        )
    )
    dots = (
        alt.Chart(alt.NamedData("context_points"))
        .mark_point(size=110, strokeWidth=2.5, opacity=1)
        .encode(
            x=x,
            y=alt.Y("ms:Q", title="ms per decode step", scale=up),
            color=colour,
            fill=alt.condition("datum.note === 'yes'", alt.value(DECODE), alt.value("transparent")),
            tooltip=tooltip,
        )
    )
    return finished(
        alt.layer(bands, dots),
        {"context_bands": band_rows(costs), "context_points": point_rows(costs)},
        description="Bands: least time to read the weights, and one row's K/V, by context length. "
        "Points: measured decode steps.",
    )


def band_rows(costs: ContextCosts) -> list[Row]:
    """Return the least milliseconds for the weights and for the K/V, by context."""
    ends = [max(1, round(costs.longest * at / (_COUNTS - 1))) for at in range(_COUNTS)]
    return [
        {
            "context": context,
            "part": part,
            "ms": milliseconds(seconds),
            "position": position,
            "note": "",
        }
        for context in dict.fromkeys(ends)
        for position, (part, seconds) in enumerate(
            zip(BANDS, _least_s(costs, context), strict=True)
        )
    ]


def point_rows(costs: ContextCosts) -> list[Row]:
    """Return the measured steps, in the order of their contexts."""
    steps: Sequence[StepAtContext] = sorted(costs.steps, key=lambda step: step.context_tokens)
    return [
        {
            "context": step.context_tokens,
            "part": MEASURED,
            "ms": milliseconds(step.median_s),
            "note": "no" if step.is_disturbed else "yes",
        }
        for step in steps
    ]


def _least_s(costs: ContextCosts, context_tokens: int) -> tuple[float, float]:
    """Return the least seconds for the weights and for the K/V, of a step at a context."""
    cost = decode_cost(costs.shape, 1, context_tokens)
    rate = costs.ceilings.bytes_per_s
    return cost.weight_bytes / rate, (cost.kv_read_bytes + cost.kv_write_bytes) / rate


def _highest_s(costs: ContextCosts) -> float:
    return max([sum(_least_s(costs, costs.longest)), *(step.median_s for step in costs.steps)])
