"""Runs of a model whose work can be counted, under roofs, for tests of rooflines and reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from inference.records.costs import Ceilings, Source
from inference.records.model import MatrixRole, ModelShape, WeightMatrix
from inference.records.rooflines import TokenSweep, TokenTiming
from inference.records.run import RunTrace
from inference.records.steps import Part, PartTime, StepEvent
from tests.builders import LAYERS, TINY_DEVICE, TINY_SHAPE
from tests.visuals.traces import trace_of

UP = WeightMatrix(
    name="mlp.up_proj",
    in_features=16,
    out_features=32,
    copies=LAYERS,
    bytes=LAYERS * 16 * 32 * 4,
    role=MatrixRole.LINEAR,
)
EMBEDDING = WeightMatrix(
    name="embed_tokens",
    in_features=258,
    out_features=16,
    copies=1,
    bytes=258 * 16 * 4,
    role=MatrixRole.EMBEDDING,
)
HEAD = WeightMatrix(
    name="lm_head",
    in_features=16,
    out_features=258,
    copies=1,
    bytes=258 * 16 * 4,
    role=MatrixRole.HEAD,
    is_tied=True,
)
COUNTED_SHAPE: ModelShape = replace(
    TINY_SHAPE, matrices=(EMBEDDING, UP, HEAD), weight_bytes=UP.bytes + EMBEDDING.bytes
)
ROOFS = Ceilings(
    flops_per_s=1e7, bytes_per_s=1e6, source=Source.MEASURED, method="measured in a test"
)
TOKEN_SWEEP = TokenSweep(
    model_id="tiny",
    device=TINY_DEVICE,
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
    points=tuple(
        TokenTiming(tokens=tokens, best_s=s, median_s=s * 1.1, worst_s=s * 1.5, repeats=3)
        for tokens, s in ((1, 0.08), (8, 0.08), (64, 0.2), (512, 1.6))
    ),
)


def counted_trace(
    prompt_tokens: int = 3,
    steps: int = 4,
    *,
    roofs: Ceilings | None = ROOFS,
    device: str = "a test machine",
    step_time_s: float = 0.05,
) -> RunTrace:
    """Return a run of the counted model; the first two steps are cold."""
    trace = trace_of([b"a"] * prompt_tokens, [b"b"] * steps, step_time_s=step_time_s)
    info = replace(
        trace.info,
        shape=COUNTED_SHAPE,
        ceilings=roofs,
        device=replace(trace.info.device, name=device),
    )
    return replace(trace, info=info)


def with_parts(
    trace: RunTrace, step: int, linear_s: float = 0.03, attention_s: float = 0.01
) -> RunTrace:
    """Return the run with one step timed in parts."""
    parts = (
        PartTime(part=Part.LINEAR, duration_s=linear_s),
        PartTime(part=Part.ATTENTION, duration_s=attention_s),
    )
    return replace(trace, events=_changed(trace.events, step, parts))


def _changed(
    events: Sequence[StepEvent], step: int, parts: tuple[PartTime, ...]
) -> tuple[StepEvent, ...]:
    return tuple(
        replace(event, parts=parts, observed=True) if event.index == step else event
        for event in events
    )
