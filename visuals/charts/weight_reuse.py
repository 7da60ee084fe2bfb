"""Weight reuse: one matrix, read once in a step, and the rows of tokens that stream through it.

The numbers of a step put into 2·T·d_in·d_out, for the newest prefill and the newest decode step.
All of it is counted. No torch, no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.counting.costs import matrix_costs
from inference.records.costs import MatrixCost
from inference.records.model import MatrixRole, ModelShape, WeightMatrix
from inference.records.steps import Phase, StepEvent
from visuals.charts.units import DASH, byte_text, counted, flop_text, significant

EXPLANATION = {
    "what": "One of the model's weight matrices, W. In every step it is read from memory once, "
    "whatever the number of tokens; each token fed is one row of X that is multiplied with all of "
    "it.",
    "read": "A prefill of many tokens uses each weight many times for one read, a decode step once "
    "for each sequence: that is why the two have different limits.",
    "how": "Counted from the model's shape and the tokens of the step. Of a mixture's experts, "
    "those expected to be chosen are read. The output head multiplies only the positions whose "
    "next token is wanted.",
    "formula": "FLOP = 2 \u00b7 T \u00b7 d_in \u00b7 d_out;   bytes = W + T \u00b7 (d_in + d_out) "
    "numbers",
    "source": "Two operations per multiply-add: Kaplan et al. 2020, Scaling Laws for Neural "
    "Language Models, section 2.1.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseLine:
    """What one matrix does in one step, one copy of it, in words and numbers.

    Attributes:
        tokens: Rows of X.
        formula: 2·T·d_in·d_out with the numbers put in.
        bytes_text: What is moved.
        reuse_text: How often each weight is used.
    """

    phase: Phase
    tokens: int
    formula: str
    bytes_text: str
    reuse_text: str


def matrix_items(shape: ModelShape) -> list[dict[str, object]]:
    """Return the matrices to choose from, in order of use, as JSON-able values."""
    return [
        {
            "name": matrix.name,
            "label": label_of(matrix),
            "d_in": matrix.in_features,
            "d_out": matrix.out_features,
        }
        for matrix in multiplied(shape)
    ]


def reuse_items(events: Sequence[StepEvent], shape: ModelShape) -> list[dict[str, object]]:
    """Return each matrix's lines for the newest step of each phase, in the order of the items.

    Empty for a run whose file says nothing of the model's matrices.
    """
    if not shape.matrices:
        return []
    steps = {phase: newest_step(events, phase) for phase in Phase}
    lines = {phase: reuse_lines(step, shape) for phase, step in steps.items() if step is not None}
    return [
        {
            phase.value: {
                "tokens": of_phase[number].tokens,
                "formula": of_phase[number].formula,
                "bytes": of_phase[number].bytes_text,
                "reuse": of_phase[number].reuse_text,
            }
            for phase, of_phase in lines.items()
        }
        for number in range(len(multiplied(shape)))
    ]


def reuse_lines(event: StepEvent, shape: ModelShape) -> list[ReuseLine]:
    """Return what every matrix does in a step, one line each."""
    costs = matrix_costs(shape, event.query_tokens, logit_rows(event))
    return [
        _line(cost, event.phase) for cost in costs if cost.matrix.role is not MatrixRole.EMBEDDING
    ]


def newest_step(events: Sequence[StepEvent], phase: Phase) -> StepEvent | None:
    """Return the newest step of a phase."""
    return next((event for event in reversed(events) if event.phase is phase), None)


def is_changed(drawn: Sequence[StepEvent], events: Sequence[StepEvent]) -> bool:
    """Tell whether the newest steps of both phases multiply other numbers of rows than before."""
    return any(_rows_of(drawn, phase) != _rows_of(events, phase) for phase in Phase)


def logit_rows(event: StepEvent) -> int:
    """Return the positions whose next token was wanted; one is computed in every step."""
    return max(1, len(event.rows))


def multiplied(shape: ModelShape) -> list[WeightMatrix]:
    """Return the matrices that something is multiplied with; an embedding is only looked up."""
    return [matrix for matrix in shape.matrices if matrix.role is not MatrixRole.EMBEDDING]


def label_of(matrix: WeightMatrix) -> str:
    """Return a matrix's name and how many there are; short, since its sizes are in the formula."""
    experts = f", {matrix.experts} experts" if matrix.experts > 1 else ""
    copies = f" in {matrix.copies} layers" if matrix.copies > 1 else ""
    return f"{matrix.name}{experts}{copies}"


def caption(events: Sequence[StepEvent], shape: ModelShape) -> str:
    """Return what both phases make of one read, in one line."""
    if not shape.matrices:
        return "This run's file lists no weight matrices."
    prefill, decode = (newest_step(events, phase) for phase in Phase)
    if prefill is None:
        return "No step yet."
    used = f"One read serves {counted(prefill.query_tokens, 'token')} in {_prefill_words(events)}"
    if decode is None:
        return f"{used}."
    return f"{used}, {decode.query_tokens:,} in decode."


def _prefill_words(events: Sequence[StepEvent]) -> str:
    """Return what the newest prefill step is: all of its prompts, or one of their chunks."""
    steps = [event for event in events if event.phase is Phase.PREFILL]
    fed = {row.request_id for row in steps[-1].rows}
    chunks = [step for step in steps if fed & {row.request_id for row in step.rows}]
    if len(chunks) == 1:
        return "prefill"
    tokens = sum(step.query_tokens for step in chunks)
    return f"prefill chunk {len(chunks):,} ({tokens:,} tokens so far)"


def _rows_of(events: Sequence[StepEvent], phase: Phase) -> tuple[int, int] | None:
    step = newest_step(events, phase)
    return None if step is None else (step.query_tokens, logit_rows(step))


def _line(cost: MatrixCost, phase: Phase) -> ReuseLine:
    matrix, copies = cost.matrix, cost.matrix.copies
    terms = f"2 \u00b7 {cost.tokens:,} \u00b7 {matrix.in_features:,} \u00b7 {matrix.out_features:,}"
    read = byte_text(cost.weight_bytes / copies)
    moved = byte_text(cost.activation_bytes / copies)
    return ReuseLine(
        phase=phase,
        tokens=cost.tokens,
        formula=f"{terms} = {flop_text(cost.flops / copies)}",
        bytes_text=f"W {read} read once; X and Y {moved}",
        reuse_text=f"each weight used {_times(cost.reuse)}",
    )


def _times(reuse: float | None) -> str:
    if reuse is None:
        return DASH
    if reuse == 1:
        return "once"
    return f"{int(reuse):,} times" if reuse == int(reuse) else f"{significant(reuse)} times"
