"""The figures that the tour's sentences name, each worked out from one run.

Measured ones are read off the run's steps; counted ones follow from the model's shape. The shown
run is of one prompt, or of one prompt several times in one batch: what is said of a row is said of
the first. No Streamlit, no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from inference.counting.costs import matrix_costs, step_cost
from inference.counting.roofline import bound_of
from inference.counting.what_if import (
    compute_bound_prompt_tokens,
    decode_cost,
    first_count,
    kv_overtakes_batch,
)
from inference.figures.disturbance import disturbance, is_disturbed, undisturbed
from inference.records.batches import BatchSweep, BatchTiming
from inference.records.costs import Ceilings, MatrixCost, StepCost
from inference.records.rooflines import Bound
from inference.records.run import RunInfo, RunTrace
from inference.records.steps import Phase, RowStep
from inference.runs.recordings import Measurements
from visuals.charts.batching import BatchFacts
from visuals.charts.context_costs import ContextCosts, StepAtContext
from visuals.charts.tokens import pieces_of, shown
from visuals.charts.weight_reuse import multiplied

# Of the matrices that a chapter could speak of, the one that the weight panel shows first.
SHOWN_MATRICES = ("up_proj", "c_fc", "dense_h_to_4h")
# Chosen: far enough to see the benefit end, on a small machine and at a long context.
# Three to a doubling, so that a line bends where the step does.
COUNTED_ROWS = tuple(sorted({round(2 ** (third / 3)) for third in range(25)}))
COUNTED_CONTEXTS = (512, 2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a chapter says of one run.

    Attributes:
        prompt_tokens: Tokens of the prompt, which prefill feeds (T and L of that step).
        row_steps: The first row's part of each step, prefill first.
        rows: Rows of the run's batch.
        selected: The first token selected, as the strip writes it.
        used_bytes: K/V of all rows after the last step, read off the cache.
        prefill_s: Step time of prefill.
        decode_times_s: Step times of decode, without those that other programs disturbed unless
            all were.
        is_prefill_disturbed: Other programs disturbed prefill; is_decode_disturbed: every decode
            step.
    """

    info: RunInfo
    prompt_tokens: int
    row_steps: tuple[RowStep, ...]
    rows: int
    selected: str
    used_bytes: int
    prefill_s: float
    decode_times_s: tuple[float, ...]
    is_prefill_disturbed: bool
    is_decode_disturbed: bool

    @property
    def outputs(self) -> int:
        """Output tokens of the first row (N)."""
        return sum(row.token_id is not None for row in self.row_steps)

    @property
    def decode_steps(self) -> int:
        """Decode steps of the first row."""
        return len(self.row_steps) - 1

    @property
    def stored(self) -> int:
        """Tokens of the first row in the cache at the end."""
        return self.row_steps[-1].context_tokens

    @property
    def decode_s(self) -> float | None:
        """Median step time of decode; None without a decode step."""
        return median(self.decode_times_s) if self.decode_times_s else None

    @property
    def roofs(self) -> Ceilings | None:
        """The device's roofs; None where they were not measured."""
        return self.info.ceilings

    @property
    def prefill_cells(self) -> int:
        """Pairs of a query and a key that the mask allows in prefill."""
        return self.prompt_tokens * (self.prompt_tokens + 1) // 2

    @property
    def kv_token_bytes(self) -> int:
        """K/V of one token in all layers."""
        return decode_cost(self.info.shape, 1, 1).kv_write_bytes

    @property
    def weight_bytes(self) -> int:
        """Weights that a decode step reads."""
        return decode_cost(self.info.shape, 1, 1).weight_bytes

    @property
    def compute_bound_tokens(self) -> int | None:
        """The shortest prompt whose prefill is compute-bound; None where none is, or no roofs."""
        roofs = self.roofs
        return None if roofs is None else compute_bound_prompt_tokens(self.info.shape, roofs)

    @property
    def kv_overtakes_rows(self) -> int | None:
        """Rows of this run's context from which a step reads more K/V than weights."""
        return kv_overtakes_batch(self.info.shape, self.stored)

    @property
    def kv_overtakes_context(self) -> int | None:
        """The context at which one row's K/V is as many bytes as the weights."""
        shape, weights = self.info.shape, self.weight_bytes
        return first_count(lambda length: decode_cost(shape, 1, length).kv_read_bytes >= weights)

    def keys_read(self, step: int) -> int:
        """Return the keys that a decode step reads; ``step`` counts from 1."""
        return self.prompt_tokens + step

    def step(self, index: int) -> StepCost:
        """Return what the first row's part of a step does at least; 0 is prefill, -1 the last."""
        row = self.row_steps[index]
        return step_cost(self.info.shape, [(row.query_tokens, row.context_tokens)])

    def batch_step(self) -> StepCost:
        """Return what the run's last decode step does at least, over all rows."""
        return decode_cost(self.info.shape, self.rows, self.stored)

    def prefill_of(self, tokens: int) -> StepCost:
        """Return what the prefill of a prompt of this many tokens does at least."""
        return step_cost(self.info.shape, [(tokens, tokens)])

    def bound(self, cost: StepCost) -> Bound | None:
        """Return the roof that a step is under; None without roofs."""
        return None if self.roofs is None else bound_of(cost, self.roofs)

    def matrix(self, query_tokens: int) -> MatrixCost:
        """Return what all copies of the chapter's matrix do in a step of so many tokens."""
        costs = matrix_costs(self.info.shape, query_tokens, 1)
        offered = [cost for cost in costs if cost.matrix in multiplied(self.info.shape)]
        named = (cost for cost in offered if cost.matrix.name.endswith(SHOWN_MATRICES))
        return next(named, offered[0])


def facts_of(trace: RunTrace | None) -> RunFacts | None:
    """Return the figures of a run; None before its first step, or where nothing can be counted."""
    if trace is None or not trace.requests or not multiplied(trace.info.shape):
        return None
    request = trace.requests[0]
    steps = tuple(
        row for event in trace.events for row in event.rows if row.request_id == request.request_id
    )
    if not steps:
        return None
    chosen = next((row.token_id for row in steps if row.token_id is not None), None)
    prefills = [event for event in trace.events if event.phase is Phase.PREFILL]
    decodes = [event for event in trace.events if event.phase is Phase.DECODE]
    return RunFacts(
        info=trace.info,
        prompt_tokens=len(request.prompt_ids),
        row_steps=steps,
        rows=len(trace.requests),
        selected="" if chosen is None else _text(trace, chosen),
        used_bytes=trace.events[-1].cache.used_bytes,
        prefill_s=sum(event.duration_s for event in prefills),
        decode_times_s=tuple(event.duration_s for event in undisturbed(decodes)),
        is_prefill_disturbed=any(map(is_disturbed, prefills)),
        is_decode_disturbed=disturbance(decodes).is_whole,
    )


def batch_facts(runs: Sequence[RunFacts]) -> BatchFacts:
    """Return what runs of one prompt in batches of several sizes show of batching.

    Their own step times are the points, at the context they came to; what is counted beside them,
    at longer contexts too, rests on the newest run's roofs.
    """
    newest = runs[-1]
    points = [_timing(run) for run in runs if run.stored == newest.stored and run.decode_times_s]
    info = newest.info
    return BatchFacts(
        shape=info.shape,
        batches=COUNTED_ROWS,
        contexts=tuple(sorted({newest.stored, *COUNTED_CONTEXTS})),
        ceilings=newest.roofs,
        sweep=BatchSweep(
            model_id=info.model_id,
            shape=info.shape,
            device=info.device,
            measured_at=info.started_at,
            points=tuple(sorted(points, key=lambda point: point.batch)),
        ),
        memory_bytes=info.device.memory_bytes,
    )


def recorded_batch_facts(measured: Measurements) -> BatchFacts:
    """Return what the recorded sweep shows of batching."""
    sweep = measured.batches
    return BatchFacts(
        shape=sweep.shape,
        batches=COUNTED_ROWS,
        contexts=tuple(sorted({point.context_tokens for point in sweep.points})),
        ceilings=measured.ceilings.ceilings,
        sweep=sweep,
        memory_bytes=sweep.device.memory_bytes,
    )


def context_facts(runs: Sequence[RunFacts]) -> ContextCosts | None:
    """Return what runs of several contexts show of a step's cost; None before there are roofs."""
    roofs = next((run.roofs for run in reversed(runs) if run.roofs is not None), None)
    if roofs is None:
        return None
    steps = [
        StepAtContext(
            context_tokens=run.stored,
            median_s=median(run.decode_times_s),
            is_disturbed=run.is_decode_disturbed,
        )
        for run in runs
        if run.decode_times_s
    ]
    return ContextCosts(shape=runs[-1].info.shape, ceilings=roofs, steps=tuple(steps))


def recorded_context_facts(measured: Measurements) -> ContextCosts:
    """Return what the recorded sweep shows of a step's cost with one row."""
    sweep = measured.batches
    steps = [
        StepAtContext(
            context_tokens=point.context_tokens,
            median_s=point.median_s,
            is_disturbed=point.is_disturbed,
        )
        for point in sweep.points
        if point.batch == 1
    ]
    roofs = measured.ceilings.ceilings
    return ContextCosts(shape=sweep.shape, ceilings=roofs, steps=tuple(steps))


def _timing(run: RunFacts) -> BatchTiming:
    times_s = run.decode_times_s
    return BatchTiming(
        batch=run.rows,
        context_tokens=run.stored,
        best_s=min(times_s),
        median_s=median(times_s),
        worst_s=max(times_s),
        repeats=len(times_s),
        used_bytes=run.used_bytes,
        is_disturbed=run.is_decode_disturbed,
    )


def _text(trace: RunTrace, token_id: int) -> str:
    piece = pieces_of(trace.pieces, {token_id}).get(token_id)
    return "" if piece is None else shown(piece)[0]
