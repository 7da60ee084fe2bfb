"""How the newest token was chosen: the likeliest ones before and after sampling, and the entropy.

No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log

import altair as alt

from inference.records.model import TokenPiece
from inference.records.options import Sampling
from inference.records.run import RunTrace
from inference.records.steps import Candidate, RowStep, StepEvent
from visuals.charts.axes import axis_end, nice_end, picked
from visuals.charts.theme import DECODE, Chart, Row, finished, whole_numbers
from visuals.charts.tokens import piece_of, probability, shown
from visuals.charts.units import significant

_STEP = "step (0 is the first)"
_ENTROPY = "entropy, bit"
TENS_BITS = 3.33  # from ten tokens on their number is written without decimals

EXPLANATION = {
    "what": "The likeliest next tokens at the newest step, and how undecided the model was at each "
    "step.",
    "read": "First bar: the model's own probabilities. Second bar: those the token was drawn from, "
    "after temperature, top-k and top-p. An entropy of n bits is as undecided as 2 to the power of "
    "n equally likely tokens.",
    "how": "Measured: from the step's own scores. Entropy is that of the model's own "
    "distribution over the whole vocabulary, before temperature.",
    "formula": "p = softmax(scores); entropy = \u2212\u2211 p \u00d7 log\u2082 p",
    "source": "Shannon 1948, A Mathematical Theory of Communication, section 6.",
}


def entropy_by_step(trace: RunTrace | None = None) -> Chart:
    """Return the entropy of the model's own distribution at each step that chose a token."""
    base = alt.Chart(alt.NamedData("entropy_by_step"))
    x = alt.X("k:Q", title=_STEP, axis=whole_numbers(), scale=alt.Scale(nice=False))
    scale = alt.Scale(nice=False, zero=True)
    y = alt.Y("bits:Q", title=_ENTROPY, axis=alt.Axis(tickCount=3), scale=scale)
    tooltip = [
        alt.Tooltip("k:Q", title="step"),
        alt.Tooltip("bits:Q", title="entropy, bit", format=".3~g"),
        alt.Tooltip("p:Q", title="probability of the chosen token", format=".3~g"),
    ]
    line = base.mark_line(color=DECODE, strokeWidth=2, interpolate="step")
    points = base.mark_point(color=DECODE, filled=True, size=24)
    ends = alt.Chart(alt.NamedData("entropy_by_step_extent")).mark_point(opacity=0)
    chart = alt.layer(
        line.encode(x=x, y=y),
        points.encode(x=x, y=y, tooltip=tooltip),
        ends.encode(x=alt.X("x:Q", title=_STEP), y=alt.Y("y:Q", title=_ENTROPY)),
    )
    datasets = None
    if trace is not None:
        first = trace.requests[0].request_id if trace.requests else ""
        rows = picked(entropy_rows(trace.events, first))
        extent = entropy_extent(trace.events, first)
        datasets = {"entropy_by_step": rows, "entropy_by_step_extent": extent}
    return finished(chart, datasets, description="Line chart: entropy in bit by step.")


def entropy_rows(events: Iterable[StepEvent], request_id: str) -> list[Row]:
    """Return one row for each step of a request that chose a token and recorded its entropy."""
    return [
        {"k": event.index, "bits": _bits(row.entropy_nats), "p": probability(row.logprob)}
        for event in events
        for row in event.rows
        if row.request_id == request_id and row.entropy_nats is not None
    ]


def entropy_extent(events: Sequence[StepEvent], request_id: str) -> list[Row]:
    """Return one row that holds the far ends of both axes, which grow in steps."""
    largest = max(
        (
            row.entropy_nats or 0.0
            for event in events
            for row in event.rows
            if row.request_id == request_id
        ),
        default=0.0,
    )
    steps = axis_end(events[-1].index if events else 0)
    return [{"x": steps, "y": nice_end(max(largest / log(2), 1.0))}]


def next_token_item(
    event: StepEvent, sampling: Sampling, row: RowStep, pieces: Mapping[int, TokenPiece]
) -> dict[str, object] | None:
    """Return the newest choice; None when the step chose nothing.

    Each candidate is id, text, probability before and after sampling (None where greedy; 0 where it
    was ruled out) and whether it was chosen.
    """
    if row.token_id is None:
        return None
    known = dict(pieces)
    rows = [_item(candidate, row, sampling, known) for candidate in row.candidates]
    if all(candidate.token_id != row.token_id for candidate in row.candidates):
        text, _ = shown(piece_of(row.token_id, known))
        rows.append([row.token_id, text, probability(row.logprob), None, True])
    return {"step": event.index, "how": how(sampling), "caption": caption(row), "rows": rows}


def how(sampling: Sampling) -> str:
    """Return how tokens are chosen, in words."""
    if sampling.is_greedy:
        return "greedy"
    parts = [f"temperature {sampling.temperature:g}"]
    if sampling.top_k is not None:
        parts.append(f"top-k {sampling.top_k}")
    if sampling.top_p is not None:
        parts.append(f"top-p {sampling.top_p:g}")
    return ", ".join(parts)


def caption(row: RowStep) -> str:
    """Return how undecided the model was, in one line."""
    bits = _bits(row.entropy_nats)
    if bits is None:
        return "The entropy of this step was not recorded."
    equal = f"{2**bits:,.0f}" if bits > TENS_BITS else significant(2**bits, 2)
    return f"Entropy {significant(bits)} bit, as if among {equal} equally likely tokens."


def _item(
    candidate: Candidate, row: RowStep, sampling: Sampling, pieces: dict[int, TokenPiece]
) -> list[object]:
    text, _ = shown(piece_of(candidate.token_id, pieces))
    after = probability(candidate.sampled_logprob)
    if after is None and not sampling.is_greedy:
        after = 0.0
    is_chosen = candidate.token_id == row.token_id
    return [candidate.token_id, text, probability(candidate.logprob), after, is_chosen]


def _bits(nats: float | None) -> float | None:
    return None if nats is None else round(max(nats, 0.0) / log(2), 4)
