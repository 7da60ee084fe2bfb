"""Where a step turns from memory- to compute-bound: its time over the tokens fed in it.

Measured step times solid, the counted lower bound dashed, and a line where each of them turns. No
torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from inference.counting.costs import step_cost
from inference.counting.roofline import lower_bound_seconds
from inference.counting.what_if import compute_bound_prompt_tokens
from inference.figures.sweeps import (
    MeasuredCrossover,
    impossible,
    left_disturbed,
    measured_crossover,
)
from inference.records.costs import Ceilings
from inference.records.model import ModelShape
from inference.records.rooflines import SWEPT_TOKENS, TokenSweep, TokenTiming
from visuals.charts.axes import nice_end
from visuals.charts.theme import (
    HOST,
    PREFILL,
    PROVENANCE_DASHES,
    Chart,
    Row,
    finished,
    within_decades,
)
from visuals.charts.units import amount, milliseconds

COUNTS = SWEPT_TOKENS
_SOURCES = ("measured", "counted")
IS_SURE = "datum.note === 'undisturbed'"
_X = "tokens fed in one step (T)"
_Y = "ms per step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """What is measured and counted of where a model turns compute-bound on a device.

    Attributes:
        ceilings: The device's roofs; None before they were measured.
        sweep: The step times; None before they were measured.
    """

    shape: ModelShape
    ceilings: Ceilings | None = None
    sweep: TokenSweep | None = None

    @property
    def counted_tokens(self) -> int | None:
        """Tokens from which on a step is compute-bound by count; None where it never is."""
        if self.ceilings is None:
            return None
        return compute_bound_prompt_tokens(self.shape, self.ceilings)

    @property
    def measured(self) -> MeasuredCrossover | None:
        """Where the measured step times turn from flat to growing; None before a sweep."""
        return None if self.sweep is None else measured_crossover(self.sweep)

    @property
    def measured_tokens(self) -> float | None:
        """Tokens at which they do; None where that is not known."""
        return None if self.measured is None else self.measured.tokens


def crossover(facts: Crossover) -> Chart:
    """Return measured and counted times over the tokens of a step, and where each turns."""
    chart = alt.layer(_lines(), *_points(), *_turns(), _ends())
    return finished(
        chart,
        {
            "crossover": time_rows(facts),
            "crossover_times": token_sweep_rows(facts.sweep),
            "crossover_at": crossover_rows(facts),
            "crossover_extent": extent_rows(facts),
        },
        description="Line chart, log-log: milliseconds of a step over the tokens fed in it.",
    )


def time_rows(facts: Crossover) -> list[Row]:
    """Return the time of a step of each number of tokens, measured and counted."""
    rows: list[Row] = [
        {"tokens": timing.tokens, "ms": milliseconds(timing.median_s), "source": "measured"}
        for timing in (facts.sweep.points if facts.sweep is not None else ())
    ]
    return rows + [
        {"tokens": tokens, "ms": milliseconds(least_s), "source": "counted"}
        for tokens, least_s in _least(facts)
    ]


def token_sweep_rows(sweep: TokenSweep | None) -> list[Row]:
    """Return the fastest and the slowest step time at each number of tokens."""
    return [
        {
            "tokens": timing.tokens,
            "ms": milliseconds(timing.median_s),
            "best": milliseconds(timing.best_s),
            "worst": milliseconds(timing.worst_s),
            "rate": timing.tokens_per_s,
            "note": _note(timing, sweep),
        }
        for timing in (sweep.points if sweep is not None else ())
    ]


def _note(timing: TokenTiming, sweep: TokenSweep | None) -> str:
    """Return how far a point can be trusted."""
    points = () if sweep is None else sweep.points
    if timing.tokens in impossible([(one.tokens, one.median_s) for one in points]):
        return "longer than with more tokens, so not known"
    return "disturbed by other programs" if timing.is_disturbed else "undisturbed"


def measured_sentences(sweep: TokenSweep) -> tuple[str, ...]:
    """Return where the measured crossover lies and how sure that is, or why it is not known."""
    found = measured_crossover(sweep)
    if found.tokens is None:
        return (f"**Measured: not known**, since {found.reason}. Measure it again.",)
    between = f"between {found.low:,.0f} and {found.high:,.0f} by the spread of the timings"
    floor = amount(milliseconds(sweep.floor_s), "ms")
    rate = amount(sweep.most_tokens_per_s, "tok/s")
    return (
        f"**Measured: {round(found.tokens):,} tokens** ({between}), where the time of a "
        f"one-token step ({floor}) meets the highest rate reached ({rate}).",
    )


def disturbed_sentence(points: Sequence[TokenTiming]) -> str:
    """Return how many points were disturbed whenever they were measured; empty for none."""
    count = sum(point.is_disturbed for point in points)
    return left_disturbed(count, len(points))


def crossover_rows(facts: Crossover) -> list[Row]:
    """Return where the counted and the measured times turn."""
    turns = {"counted": facts.counted_tokens, "measured": facts.measured_tokens}
    return [
        {
            "tokens": tokens,
            "source": source,
            "side": "right" if tokens < COUNTS[len(COUNTS) // 2] else "left",
            "label": f"crossover at {round(tokens):,} ({source})",
        }
        for source, tokens in turns.items()
        if tokens is not None and tokens <= COUNTS[-1] * 2
    ]


def extent_rows(facts: Crossover) -> list[Row]:
    """Return the corners of the chart."""
    times = [row["ms"] for row in time_rows(facts)]
    values = [float(ms) for ms in times if isinstance(ms, (int, float))]
    if not values:
        return []
    low, high = min(values), max(values)
    return [{"tokens": 1, "ms": low / 1.6}, {"tokens": COUNTS[-1], "ms": nice_end(high * 1.1)}]


def _least(facts: Crossover) -> Sequence[tuple[int, float]]:
    """Return the counted least time at each number of tokens."""
    if facts.ceilings is None:
        return ()
    return [
        (tokens, lower_bound_seconds(step_cost(facts.shape, [(tokens, tokens)]), facts.ceilings))
        for tokens in COUNTS
    ]


def _x(field: str = "tokens:Q") -> alt.X:
    scale = alt.Scale(type="log", base=2, nice=False)
    axis = alt.Axis(values=list(COUNTS), format=",d", grid=False)
    return alt.X(field, title=_X, scale=scale, axis=axis)


def _y(field: str = "ms:Q") -> alt.Y:
    scale = alt.Scale(type="log", nice=False)
    axis = within_decades("format(datum.value, ',~g')")
    return alt.Y(field, title=_Y, scale=scale, axis=axis)


def _dash() -> alt.StrokeDash:
    scale = alt.Scale(domain=_SOURCES, range=[list(PROVENANCE_DASHES[name]) for name in _SOURCES])
    return alt.StrokeDash("source:N", title=None, scale=scale, legend=alt.Legend(orient="top"))


def _lines() -> alt.Chart:
    base = alt.Chart(alt.NamedData("crossover"))
    return base.mark_line(color=PREFILL, strokeWidth=2.5).encode(x=_x(), y=_y(), strokeDash=_dash())


def _points() -> tuple[alt.Chart, alt.Chart]:
    """Return the measured medians with their spread; what is not sure is hollow."""
    base = alt.Chart(alt.NamedData("crossover_times"))
    spread = base.mark_rule(color=PREFILL, strokeWidth=2, opacity=0.6).encode(
        x=_x(), y=_y("best:Q"), y2="worst:Q"
    )
    points = base.mark_point(shape="square", size=70, stroke=PREFILL, opacity=1).encode(
        x=_x(),
        y=_y(),
        fill=alt.condition(IS_SURE, alt.value(PREFILL), alt.value("transparent")),
        tooltip=[
            alt.Tooltip("tokens:Q", title="tokens"),
            alt.Tooltip("best:Q", title="fastest step time, ms", format=".4~g"),
            alt.Tooltip("ms:Q", title="median step time, ms", format=".4~g"),
            alt.Tooltip("worst:Q", title="slowest step time, ms", format=".4~g"),
            alt.Tooltip("rate:Q", title="tokens/s", format=",.3~g"),
            alt.Tooltip("note:N", title="reading"),
        ],
    )
    return spread, points


def _turns() -> tuple[alt.Chart, ...]:
    """Return a line where each of the times turns, and its label, one below the other."""
    base = alt.Chart(alt.NamedData("crossover_at"))
    rule = base.mark_rule(color=HOST, strokeWidth=2).encode(x=_x(), strokeDash=_dash())
    # On the side of its line where there is room; measured below counted. No filters: one that
    # leaves nothing makes Vega warn of an axis without an extent.
    is_right = "datum.side === 'right'"
    label = base.mark_text(
        color=HOST,
        align=alt.ExprRef(expr=f"{is_right} ? 'left' : 'right'"),
        baseline="top",
        dx=alt.ExprRef(expr=f"{is_right} ? 5 : -5"),
        dy=alt.ExprRef(expr="datum.source === 'counted' ? 0 : 20"),
        fontSize=14,
        fontWeight=600,
    )
    return (rule, label.encode(x=_x(), y=alt.value(4), text="label:N"))


def _ends() -> alt.Chart:
    ends = alt.Chart(alt.NamedData("crossover_extent")).mark_point(opacity=0)
    return ends.encode(x=_x(), y=_y())
