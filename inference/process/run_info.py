"""What a run says of itself: the model, the device, and how it was made."""

from __future__ import annotations

import importlib.metadata
from datetime import UTC, datetime

from inference.engine.clock import StepClock
from inference.engine.loop import GenerationOptions
from inference.models.loading import LoadedModel
from inference.process.messages import Generate
from inference.records.costs import Ceilings
from inference.records.run import RunInfo

VERSIONED = ("torch", "transformers")


def run_info(
    loaded: LoadedModel,
    clock: StepClock,
    command: Generate,
    prepared: tuple[GenerationOptions, str],
    ceilings: Ceilings | None = None,
) -> RunInfo:
    """Return what a run on this model is made with, dated now.

    Args:
        loaded: The model.
        clock: What times its step times.
        command: What was asked for.
        prepared: What ``Engine.prepare`` made of it.
        ceilings: The device's roofs for this dtype; None when they were not measured.
    """
    options, decode_note = prepared
    return RunInfo(
        run_id=command.run_id,
        model_id=loaded.model_id,
        shape=loaded.shape,
        device=loaded.device,
        attention=loaded.attention,
        clock=clock.name,
        seed=command.seed,
        started_at=datetime.now(UTC),
        versions=tuple((name, importlib.metadata.version(name)) for name in VERSIONED),
        cache=options.cache,
        chunk_tokens=command.chunk_tokens,
        plan=command.plan,
        ceilings=ceilings,
        kernels=loaded.kernels,
        decode=options.decode,
        decode_note=decode_note,
        device_note=loaded.device_note,
    )
