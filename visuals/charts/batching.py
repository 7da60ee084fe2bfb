"""What a batch gains and where that ends: time, tokens per second and bytes over the batch.

Measured points stand beside counted lines; another device has counted lines only. Each
context has one colour on every chart. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from inference.counting.batch_predictions import batch_limits, predict_batch, predict_batches
from inference.counting.what_if import decode_cost, memory_needed_bytes
from inference.figures.sweeps import impossible_batches, left_disturbed
from inference.records.batches import BatchLimits, BatchPrediction, BatchSweep, BatchTiming
from inference.records.costs import Ceilings
from inference.records.model import ModelShape
from visuals.charts.theme import (
    DASHED,
    HOST,
    KV,
    SOLID,
    WEIGHTS,
    Chart,
    Row,
    finished,
    within_decades,
)
from visuals.charts.units import amount, capacity, gibibytes, milliseconds, scaled

# Of the Okabe-Ito set, those that stand for no part of a step elsewhere.
CONTEXT_COLOURS = ("#E69F00", "#56B4E9", "#D55E00", "#0072B2", "#009E73")
SOURCES = ("measured", "counted")
UNDISTURBED = "undisturbed"
IMPOSSIBLE = "longer than with more rows, so not known"


MOST_TICKS = 9  # of more batches, the powers of two are named


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """What is measured and counted of a model's batches on a device.

    Attributes:
        ceilings: The device's roofs; None before they were measured.
        sweep: Step times measured here; None where nothing was.
        memory_bytes: The device's memory, where facts.
    """

    shape: ModelShape
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    ceilings: Ceilings | None = None
    sweep: BatchSweep | None = None
    memory_bytes: int | None = None

    @property
    def points(self) -> tuple[BatchTiming, ...]:
        """Step times measured at the contexts chosen."""
        points = self.sweep.points if self.sweep is not None else ()
        return tuple(timing for timing in points if timing.context_tokens in self.contexts)

    @property
    def predictions(self) -> tuple[BatchPrediction, ...]:
        """What every batch that fits needs at every context, counted."""
        if self.ceilings is None or not self.shape.matrices:
            return ()
        every = predict_batches(self.shape, self.ceilings, self.batches, self.contexts)
        return tuple(one for one in every if self.fits(one.batch, one.context_tokens))

    def fits(self, batch: int, context_tokens: int) -> bool:
        """Tell whether weights and K/V fit in the memory, as far as that is known."""
        needed = memory_needed_bytes(self.shape, batch, context_tokens)
        return self.memory_bytes is None or needed <= self.memory_bytes

    @property
    def limits(self) -> tuple[BatchLimits, ...]:
        """Where the benefit ends, at each context."""
        if self.ceilings is None or not self.shape.matrices:
            return ()
        return tuple(
            batch_limits(self.shape, self.ceilings, context, self.memory_bytes)
            for context in self.contexts
        )


def batch_times(facts: BatchFacts) -> Chart:
    """Return the time of a decode step over the batch, a colour for each context."""
    return _over_batch(facts, "ms", "ms per step", "batch_times")


def batch_rates(facts: BatchFacts) -> Chart:
    """Return the tokens per second of all rows over the batch."""
    return _over_batch(facts, "all_rate", "tokens/s, all rows", "batch_rates")


def sequence_rates(facts: BatchFacts) -> Chart:
    """Return the tokens per second of one row over the batch."""
    return _over_batch(facts, "one_rate", "tokens/s, each row", "sequence_rates")


def batch_bytes(facts: BatchFacts, context_tokens: int) -> Chart:
    """Return the bytes that a step reads at each batch, weights and K/V stacked."""
    base = alt.Chart(alt.NamedData("batch_bytes"))
    bars = base.mark_bar().encode(
        x=alt.X("batch:O", title="rows in the batch", axis=alt.Axis(labelAngle=0, ticks=False)),
        y=alt.Y(
            "gib:Q", title="GiB read per step, counted", stack="zero", axis=alt.Axis(tickCount=4)
        ),
        color=alt.Color(
            "part:N",
            title=None,
            scale=alt.Scale(domain=["weights", "K/V"], range=[WEIGHTS, KV]),
            legend=alt.Legend(orient="top"),
        ),
        opacity=alt.condition("datum.fits", alt.value(1), alt.value(0.35)),
        order=alt.Order("position:Q"),
        tooltip=[
            alt.Tooltip("batch:O", title="rows"),
            alt.Tooltip("part:N"),
            alt.Tooltip("gib:Q", title="GiB, counted", format=".3~g"),
            alt.Tooltip("note:N", title="memory"),
        ],
    )
    return finished(
        alt.layer(bars),
        {"batch_bytes": byte_rows(facts, context_tokens)},
        description="Stacked bars: bytes that a decode step reads, weights and K/V, by batch.",
    )


def sweep_rows(facts: BatchFacts) -> list[Row]:
    """Return time and rates at every batch and context, measured and counted."""
    return [*measured_rows(facts), *(_counted(prediction) for prediction in facts.predictions)]


def measured_rows(facts: BatchFacts) -> list[Row]:
    """Return time and rates of every step measured."""
    return [_measured(timing, _note(timing, facts.points)) for timing in facts.points]


def byte_rows(facts: BatchFacts, context_tokens: int) -> list[Row]:
    """Return the bytes of weights and of K/V that a step reads, and whether the rows fit."""
    rows: list[Row] = []
    for batch in facts.batches if facts.shape.matrices else ():
        cost = decode_cost(facts.shape, batch, context_tokens)
        fits = facts.fits(batch, context_tokens)
        parts = {"weights": cost.weight_bytes, "K/V": cost.kv_read_bytes}
        rows += [
            {
                "batch": batch,
                "part": part,
                "position": index,
                "gib": gibibytes(count),
                "fits": fits,
                "note": "fits" if fits else "too large for the device",
            }
            for index, (part, count) in enumerate(parts.items())
        ]
    return rows


def crossover_rows(facts: BatchFacts) -> list[Row]:
    """Return the batches, of those drawn, at which K/V overtakes weights."""
    rows: list[Row] = []
    for limits in facts.limits:
        batch = limits.kv_overtakes_batch
        if batch is None or facts.ceilings is None or not facts.fits(batch, limits.context_tokens):
            continue
        if batch <= max(facts.batches):
            prediction = predict_batch(facts.shape, facts.ceilings, batch, limits.context_tokens)
            rows.append(_counted(prediction) | {"note": "K/V overtakes the weights"})
    return rows


def compute_rows(facts: BatchFacts) -> list[Row]:
    """Return the batch, if drawn, from which linear operations are compute-bound."""
    turns = {limits.linear_compute_batch for limits in facts.limits}
    return [
        {"batch": turn, "note": "linear operations become compute-bound"}
        for turn in turns
        if turn is not None and turn <= max(facts.batches)
    ]


def limit_sentences(facts: BatchFacts) -> tuple[str, ...]:
    """Return where the benefit ends, a sentence for each context and one for linear work."""
    limits = facts.limits
    if not limits:
        return ()
    turn = limits[0].linear_compute_batch
    linear = (
        f"Linear operations are compute-bound from **{turn:,} rows** on, at any context."
        if turn
        else "Linear operations stay memory-bound at any batch size."
    )
    memory = facts.memory_bytes
    return (linear, *(_limit_sentence(at_context, memory) for at_context in limits))


def gain_sentences(sweep: BatchSweep) -> tuple[str, ...]:
    """Return what the largest batch measured gains at each context, and what it costs a row."""
    sentences: list[str] = []
    for context in dict.fromkeys(timing.context_tokens for timing in sweep.points):
        timings = [timing for timing in sweep.points if timing.context_tokens == context]
        wrong = impossible_batches(sweep.points, context)
        if wrong:
            sentences.append(_impossible_sentence(context, sorted(wrong)))
        known = [timing for timing in timings if timing.batch not in wrong]
        first, last = known[0], known[-1]
        if first.batch == last.batch:
            continue
        gain = last.batch_tokens_per_s / first.batch_tokens_per_s
        sentences.append(
            f"Context {context:,}: from {first.batch} to {last.batch} rows, **{gain:.2g} times** "
            f"the tokens/s ({scaled(first.batch_tokens_per_s, 'tok/s')} to "
            f"{scaled(last.batch_tokens_per_s, 'tok/s')}); one step takes "
            f"{amount(milliseconds(first.median_s), 'ms')} to "
            f"{amount(milliseconds(last.median_s), 'ms')}."
        )
    return tuple(sentences)


def disturbed_sentence(sweep: BatchSweep) -> str:
    """Return how many points were disturbed whenever they were measured; empty for none."""
    return left_disturbed(sum(one.is_disturbed for one in sweep.points), len(sweep.points))


def _impossible_sentence(context: int, batches: Sequence[int]) -> str:
    """Return that some readings cannot be, without giving them as results."""
    rows = f"{', '.join(f'{batch:,}' for batch in batches)} row{'s' * (batches != [1])}"
    return (
        f"Context {context:,}: a step of {rows} was measured longer than one of more rows, which "
        "cannot be, so its time is **not known**. Measure again once the machine is idle."
    )


def _limit_sentence(limits: BatchLimits, memory_bytes: int | None) -> str:
    kv = limits.kv_overtakes_batch
    overtakes = (
        f"K/V overtakes the weights from **{kv:,} rows** on"
        if kv
        else "K/V never overtakes the weights, whatever the batch size"
    )
    rows = f"{limits.most_rows or 0:,} rows fit beside the weights"
    fits = "" if limits.most_rows is None else f"; {rows} in {capacity(memory_bytes)} of memory"
    return f"Context {limits.context_tokens:,}: {overtakes}{fits}."


def _note(timing: BatchTiming, points: Sequence[BatchTiming]) -> str:
    """Return how far a measured point can be trusted."""
    if timing.batch in impossible_batches(points, timing.context_tokens):
        return IMPOSSIBLE
    return "disturbed by other programs" if timing.is_disturbed else UNDISTURBED


def _measured(timing: BatchTiming, note: str) -> Row:
    """Return the row of a measured point; of one that cannot be, the spread alone."""
    is_known = note != IMPOSSIBLE
    best_s, worst_s = timing.best_s, timing.worst_s
    return {
        "batch": timing.batch,
        "context": f"{timing.context_tokens:,}",
        "source": "measured",
        "note": note,
        "ms": milliseconds(timing.median_s) if is_known else None,
        "ms_low": milliseconds(best_s),
        "ms_high": milliseconds(worst_s),
        "all_rate": timing.batch_tokens_per_s if is_known else None,
        "all_rate_low": timing.batch / worst_s,
        "all_rate_high": timing.batch / best_s,
        "one_rate": timing.sequence_tokens_per_s if is_known else None,
        "one_rate_low": 1 / worst_s,
        "one_rate_high": 1 / best_s,
    }


def _counted(prediction: BatchPrediction) -> Row:
    return {
        "batch": prediction.batch,
        "context": f"{prediction.context_tokens:,}",
        "source": "counted",
        "note": "counted",
        "ms": milliseconds(prediction.step_s),
        "all_rate": prediction.batch_tokens_per_s,
        "one_rate": prediction.sequence_tokens_per_s,
    }


def _over_batch(facts: BatchFacts, field: str, title: str, name: str) -> Chart:
    """Return one figure over the batch: solid points measured, dashed lines counted."""
    base = alt.Chart(alt.NamedData(name))
    contexts = [f"{context:,}" for context in facts.contexts]
    x = _batch_axis(facts.batches)
    axis = within_decades("format(datum.value, ',~g')")
    scale = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y(f"{field}:Q", title=title, scale=scale, axis=axis)
    colours = alt.Scale(domain=contexts, range=_colours(contexts))
    # One legend stands for both, so both have to describe it alike.
    alike: dict[str, Any] = {
        "shorthand": "context:N",
        "title": "context",
        "sort": contexts,
        "scale": colours,
        "legend": alt.Legend(orient="top", titleOrient="left"),
    }
    color = alt.Color(**alike)
    tooltip = [
        alt.Tooltip("batch:Q", title="rows"),
        alt.Tooltip("context:N", title="context, tokens"),
        alt.Tooltip("source:N"),
        alt.Tooltip(f"{field}:Q", title=title, format=".4~g"),
    ]
    dash = alt.StrokeDash(
        "source:N",
        scale=alt.Scale(domain=list(SOURCES), range=[list(SOLID), list(DASHED)]),
        legend=None,
    )
    known = base.transform_filter(f"datum.{field} !== null")
    lines = known.mark_line(strokeWidth=2.5).encode(
        x=x, y=y, color=color, tooltip=tooltip, strokeDash=dash
    )
    measured = alt.Chart(alt.NamedData(f"{name}_points"))
    spread = measured.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x,
        y=alt.Y(f"{field}_low:Q", title=title, scale=scale, axis=axis),
        y2=f"{field}_high:Q",
        color=color,
    )
    is_sure = f"datum.note === '{UNDISTURBED}'"
    points = measured.transform_filter(f"datum.{field} !== null").mark_point(size=70, opacity=1)
    turns = alt.Chart(alt.NamedData(f"{name}_turns")).mark_point(
        shape="triangle-up", filled=True, size=130, opacity=1
    )
    rule = alt.Chart(alt.NamedData(f"{name}_compute")).mark_rule(color=HOST, strokeDash=[2, 3])
    return finished(
        alt.layer(
            lines,
            spread,
            points.encode(
                x=x,
                y=y,
                color=color,
                fill=alt.Fill(**alike),
                fillOpacity=alt.condition(is_sure, alt.value(1), alt.value(0)),
                tooltip=[*tooltip, alt.Tooltip("note:N", title="reading")],
            ),
            turns.encode(x=x, y=y, color=color, tooltip=["note:N", *tooltip]),
            rule.encode(x=x, tooltip=["note:N", alt.Tooltip("batch:Q", title="rows")]),
        ),
        {
            name: sweep_rows(facts),
            f"{name}_points": measured_rows(facts),
            f"{name}_turns": crossover_rows(facts),
            f"{name}_compute": compute_rows(facts),
        },
        description=f"Line chart, log-log: {title} over the rows of a batch.",
    )


def _colours(contexts: Sequence[str]) -> list[str]:
    return [CONTEXT_COLOURS[index % len(CONTEXT_COLOURS)] for index in range(len(contexts))]


def _batch_axis(batches: Iterable[int]) -> alt.X:
    scale = alt.Scale(type="log", base=2, nice=False)
    counts = list(batches)
    if len(counts) > MOST_TICKS:
        counts = [count for count in counts if count.bit_count() == 1]
    axis = alt.Axis(values=counts, format=",d", grid=False)
    return alt.X("batch:Q", title="rows in the batch", scale=scale, axis=axis)
