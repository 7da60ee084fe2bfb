"""Steps of scripted length and the runs made of them."""

from __future__ import annotations

from datetime import UTC, datetime

from inference.records.model import Device, LayerType, ModelShape
from inference.records.options import Sampling
from inference.records.run import Request, RunInfo, RunTrace
from inference.records.steps import CacheState, Phase, RowStep, StepEvent

SHAPE = ModelShape(
    model_type="llama",
    vocab_size=32,
    hidden_size=8,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=4,
    max_position_embeddings=64,
    tie_word_embeddings=True,
    layer_types=(LayerType.FULL,),
    sliding_window=None,
    weight_bytes=1024,
    kv_dtype_bytes=4,
    kv_bytes_per_token=32,
)
INFO = RunInfo(
    run_id="r",
    model_id="tiny",
    shape=SHAPE,
    device=Device(kind="cpu", name="scripted", dtype="float32", memory_bytes=None),
    attention="sdpa",
    clock="host",
    seed=0,
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
    versions=(),
)


def step(
    phase: Phase, step_time_s: float, *rows: str, observed: bool = False, cold: bool = False
) -> StepEvent:
    """Return an event; a row named ``a`` selects a token, one named ``a-`` does not."""
    return StepEvent(
        index=0,
        phase=phase,
        rows=tuple(
            RowStep(
                request_id=name.rstrip("-"),
                slot=slot,
                query_tokens=1,
                context_tokens=4,
                token_id=None if name.endswith("-") else 5,
                logprob=None,
                finish=None,
            )
            for slot, name in enumerate(rows)
        ),
        cache=CacheState(tokens_per_layer=(4,), used_bytes=128, allocated_bytes=128),
        started_s=0.0,
        duration_s=step_time_s,
        observed=observed,
        cold=cold,
    )


def prefill(
    step_time_s: float, *rows: str, observed: bool = False, cold: bool = False
) -> StepEvent:
    """Return a prefill step of these rows."""
    return step(Phase.PREFILL, step_time_s, *rows, observed=observed, cold=cold)


def decode(step_time_s: float, *rows: str, observed: bool = False, cold: bool = False) -> StepEvent:
    """Return a decode step of these rows."""
    return step(Phase.DECODE, step_time_s, *rows, observed=observed, cold=cold)


def trace_of(*events: StepEvent, requests: str = "a") -> RunTrace:
    """Return a run of these events and of one request per letter."""
    return RunTrace(
        info=INFO,
        requests=tuple(
            Request(
                request_id=name,
                prompt_text="",
                prompt_ids=(1, 2, 3),
                max_new_tokens=8,
                sampling=Sampling(),
            )
            for name in requests
        ),
        events=events,
        telemetry=(),
        outputs=(),
    )
