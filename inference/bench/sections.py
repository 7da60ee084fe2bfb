"""The sections of ``bench``, each measured on one loaded model and returned as records."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

from inference.bench.rounds import (
    Spread,
    Target,
    alternate,
    rates,
    ratio_of,
    speed_ratio,
    spread_of,
)
from inference.bench.subjects import (
    Setting,
    bare_loop,
    library_generate,
    own_engine,
    recorded_events,
)
from inference.calibration.batch_sweep import check_sweep, sweep_batches
from inference.calibration.ceilings import OnProgress
from inference.calibration.timings import Stopwatch
from inference.counting.batch_predictions import predict_batch
from inference.counting.costs import step_cost
from inference.engine.clock import StepClock
from inference.figures.sweeps import impossible_batches
from inference.kernels.install import install
from inference.models.loading import LoadedModel
from inference.records.batches import BatchTiming
from inference.records.rooflines import MeasuredCeilings
from inference.runs.interning import Interner

BATCHES = (1, 2, 4, 8, 16)
BATCH_CONTEXT = 128
MEMORY_STEPS = 64
ROOM_TOKENS = 4  # fed before and after the steps that count
SWEEP_CONTEXTS = (128, 1024, 4096)
ENGINE, PLAIN, CAPTURING = "engine", "engine, no kernels", "engine, one layer captured"
BARE, BARE_KERNELS, GENERATE = "bare loop", "bare loop with kernels", "generate()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: Turns of each subject.
        steps: Decode steps of a turn that count.
        page_rounds: Turns of the page's runs, each some seconds long.
    """

    contexts: tuple[int, ...]
    batches: tuple[int, ...] = BATCHES
    rounds: int
    steps: int
    page_rounds: int


QUICK = Plan(contexts=(128, 1024, 4096), rounds=5, steps=6, page_rounds=3)
FULL = Plan(contexts=(128, 1024, 4096, 8192), rounds=11, steps=10, page_rounds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFigures:
    """Decode of one row at one context.

    Attributes:
        tokens_per_s: By subject.
        ratios: The engine's speed by that of each other subject, within each round.
        capture_ratio: The speed of steps whose attention was captured, by that of the others.
        roof_ratio: The bytes that a step must move by its time, as a share of the memory's
            measured rate; None without one.
    """

    context: int
    tokens_per_s: dict[str, Spread]
    ratios: dict[str, Spread]
    observed_ratio: Spread
    capture_ratio: Spread
    roof_ratio: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """Decode of several rows, all rows together, with kernels and without."""

    rows: int
    tokens_per_s: Spread
    plain_tokens_per_s: Spread
    ratio_to_one_row: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFigures:
    """Decode of one number of rows at one context.

    Attributes:
        step_s: None where it was measured longer than a step of more rows, which cannot be.
        least_s: What a step must take by the measured roofs; None without them.
        tokens_per_s: None likewise.
        is_disturbed: True when other programs disturbed every timing.
    """

    rows: int
    context: int
    step_s: float | None
    least_s: float | None
    tokens_per_s: float | None
    kv_bytes: int
    is_disturbed: bool = False


def measure_contexts(
    loaded: LoadedModel, clock: StepClock, plan: Plan, roof: float | None, on_progress: OnProgress
) -> list[ContextFigures]:
    """Return the figures of each context that the model takes."""
    figures: list[ContextFigures] = []
    fit = _fitting(loaded, plan.contexts, plan)
    for index, context in enumerate(fit):
        on_progress(index / len(fit), f"decode at {context} tokens of context")
        setting = Setting(model=loaded.model, clock=clock, context=context, steps=plan.steps)
        seconds = alternate(
            {
                GENERATE: library_generate(setting),
                BARE: bare_loop(setting, has_kernels=False),
                PLAIN: own_engine(setting, has_kernels=False),
                BARE_KERNELS: bare_loop(setting, has_kernels=True),
                CAPTURING: own_engine(setting, has_kernels=True, is_capturing=True),
                ENGINE: own_engine(setting, has_kernels=True),
            },
            plan.rounds,
        )
        moved = step_cost(loaded.shape, [(1, context + plan.steps // 2)]).bytes_moved
        ours = seconds[ENGINE]
        figures.append(
            ContextFigures(
                context=context,
                tokens_per_s={name: rates(values, 1) for name, values in seconds.items()},
                ratios={
                    name: speed_ratio(ours, values)
                    for name, values in seconds.items()
                    if name != ENGINE
                },
                observed_ratio=speed_ratio(ours, seconds[BARE_KERNELS]),
                capture_ratio=speed_ratio(seconds[CAPTURING], ours),
                roof_ratio=None if roof is None else rates(ours, moved / roof),
            )
        )
    return figures


def measure_batches(
    loaded: LoadedModel, clock: StepClock, plan: Plan, on_progress: OnProgress
) -> list[BatchFigures]:
    """Return the figures of each number of rows."""
    on_progress(0.0, f"batches of {min(plan.batches)} to {max(plan.batches)} rows")
    settings = {
        rows: Setting(
            model=loaded.model, clock=clock, context=BATCH_CONTEXT, rows=rows, steps=plan.steps
        )
        for rows in plan.batches
    }
    ours = alternate(
        {str(rows): own_engine(one, has_kernels=True) for rows, one in settings.items()},
        plan.rounds,
    )
    plain = alternate(
        {str(rows): own_engine(one, has_kernels=False) for rows, one in settings.items()},
        max(1, plan.rounds // 2),
    )
    one_row = ours[str(min(plan.batches))]
    return [
        BatchFigures(
            rows=rows,
            tokens_per_s=rates(ours[str(rows)], rows),
            plain_tokens_per_s=rates(plain[str(rows)], rows),
            ratio_to_one_row=ratio_of([rows * single for single in one_row], ours[str(rows)]),
        )
        for rows in plan.batches
    ]


def measure_sweep(
    loaded: LoadedModel,
    clock: StepClock,
    plan: Plan,
    roofs: MeasuredCeilings | None,
    on_progress: OnProgress,
) -> list[SweepFigures]:
    """Return each batch at each context that there is room for, with kernels as a run has them."""
    contexts = _fitting(loaded, SWEEP_CONTEXTS, plan)
    pairs = check_sweep(plan.batches, contexts)
    points: Sequence[BatchTiming] = ()
    install(loaded.model)  # the rounds before may have ended without the kernels
    for sweep in sweep_batches(loaded, Stopwatch(clock), pairs):
        on_progress(len(sweep.points) / len(pairs), "batch by context")
        points = sweep.points
    return [
        SweepFigures(
            rows=point.batch,
            context=point.context_tokens,
            step_s=None if _is_wrong(point, points) else point.median_s,
            least_s=None
            if roofs is None
            else predict_batch(
                loaded.shape, roofs.ceilings, point.batch, point.context_tokens
            ).step_s,
            tokens_per_s=None if _is_wrong(point, points) else point.batch_tokens_per_s,
            kv_bytes=point.used_bytes,
            is_disturbed=point.is_disturbed,
        )
        for point in points
    ]


def _is_wrong(point: BatchTiming, points: Sequence[BatchTiming]) -> bool:
    """Tell whether a step was measured longer than one with more rows."""
    return point.batch in impossible_batches(points, point.context_tokens)


def bytes_per_step(loaded: LoadedModel, clock: StepClock) -> float:
    """Return the bytes of memory that one decode step keeps in the process that shows it."""
    setting = Setting(model=loaded.model, clock=clock, context=BATCH_CONTEXT, steps=MEMORY_STEPS)
    received = [pickle.dumps(event) for event in recorded_events(setting)]
    interner = Interner()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [interner.shared(pickle.loads(one)) for one in received]  # noqa: S301  made above
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / len(kept)


def targets(
    contexts: Sequence[ContextFigures], batches: Sequence[BatchFigures], kept_bytes: float
) -> list[Target]:
    """Return what is to be reached beside what was measured."""
    by_context = {one.context: one for one in contexts}
    by_rows = {one.rows: one for one in batches}
    short, long, eight = by_context.get(128), by_context.get(4096), by_rows.get(8)
    return [
        Target(
            name="decode ÷ generate(), 128 tokens",
            wanted=3.5,
            found=short.ratios[GENERATE] if short else None,
        ),
        Target(
            name="decode ÷ generate(), 4,096 tokens",
            wanted=3.5,
            found=long.ratios[GENERATE] if long else None,
        ),
        Target(
            name="share of the memory roof, 128 tokens",
            wanted=0.65,
            found=short.roof_ratio if short else None,
        ),
        Target(
            name="8 rows ÷ 1 row, all tokens/s",
            wanted=4.0,
            found=eight.ratio_to_one_row if eight else None,
        ),
        Target(
            name="observed ÷ unobserved",
            wanted=0.97,
            found=short.observed_ratio if short else None,
        ),
        *(
            Target(
                name=f"one layer captured ÷ none, {one.context:,} tokens",
                wanted=0.9,
                found=one.capture_ratio,
            )
            for one in contexts
        ),
        Target(
            name="bytes kept per step", wanted=2048, found=spread_of([kept_bytes]), is_at_most=True
        ),
    ]


def _fitting(loaded: LoadedModel, contexts: Sequence[int], plan: Plan) -> list[int]:
    """Return the contexts that the model takes; a step fed at its very end counts as the whole."""
    limit = loaded.context_limit
    if limit is None:
        return list(contexts)
    last = limit - plan.steps - ROOM_TOKENS
    return [min(one, last) for one in contexts if one <= limit]
