"""Makes what comes with the program: runs and measurements, each again until it was quiet.

A run is quiet when no step of it was disturbed by another program, no point lies above the roofs
and there is nothing to note of the device. Of several that were not, the one disturbed least is
kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import torch

from inference.calibration.batch_sweep import check_sweep, sweep_batches
from inference.calibration.ceilings import measure_ceilings
from inference.calibration.timings import Stopwatch
from inference.calibration.token_sweep import dated_sweep, sweep_tokens
from inference.counting.costs import step_cost
from inference.counting.roofline import roofline_point, work_of
from inference.engine.backend import TorchBackend
from inference.figures.device import notes_of
from inference.figures.disturbance import is_disturbed
from inference.models.devices import DTYPES
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.headless import HeadlessRunner
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, build_requests
from inference.process.recaptures import with_attention
from inference.process.runner import generation_options
from inference.records.attention import AttentionChoice
from inference.records.errors import BackendError
from inference.records.options import BatchPlan, Policy, Sampling
from inference.records.rooflines import SWEPT_TOKENS, MeasuredCeilings
from inference.records.run import RunTrace
from inference.records.steps import Part
from inference.runs.recordings import (
    BATCH,
    COMPARISON,
    FIRST_RUN,
    Measurements,
    write_measurements,
    write_runs,
)

OnStage = Callable[[str], None]

EXAMPLES = Path(__file__).resolve().parents[2] / "assets" / "examples.json"
FIRST_TOKENS, COMPARED_TOKENS, BATCH_TOKENS = 64, 48, 24
FIRST_EXAMPLE = 1
COMPARED_EXAMPLES = (1, 2, 3)
BATCHED_EXAMPLES = (0, 1, 2, 3)
BATCH_PLAN = BatchPlan(policy=Policy.CONTINUOUS, slots=2)
BATCH_GAP_S = 0.4
REPEATS = 2
# The middle layer first, which is shown first; the first and the last, which look different.
CAPTURED = tuple(AttentionChoice(layer=layer) for layer in (15, 0, 7, 22, 29))
SPLIT_EVERY = 16
SWEPT_BATCHES, SWEPT_CONTEXTS = (1, 2, 4, 8), (64, 512, 2048)


class Recorder:
    """Makes runs and measurements on one model."""

    def __init__(self, loaded: LoadedModel, on_stage: OnStage, tries: int) -> None:
        self._loaded = loaded
        self._codec = TextCodec.from_files(loaded.tokenizer_files)
        self._runner = HeadlessRunner(loaded, self._codec)
        self._say = on_stage
        self._tries = tries

    def record(self, folder: Path) -> None:
        """Make everything and write it into a folder.

        Raises:
            InputError: It cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        measured = self._measurements()
        write_measurements(measured, folder)
        self._runner.ceilings = measured.ceilings.ceilings
        prompts = _example_prompts()
        self._run(_order(prompts[:1], COMPARED_TOKENS))  # warms the engine; not kept
        first = self._quiet_run(_order([prompts[FIRST_EXAMPLE]], FIRST_TOKENS, SPLIT_EVERY))
        first = with_attention(first, self._runner.runner.backend, CAPTURED)
        write_runs((first,), FIRST_RUN, folder)
        compared = tuple(
            self._quiet_run(_order([prompts[index]], COMPARED_TOKENS))
            for _ in range(REPEATS)
            for index in COMPARED_EXAMPLES
        )
        write_runs(compared, COMPARISON, folder)
        batch = self._quiet_run(_batch_order([prompts[index] for index in BATCHED_EXAMPLES]))
        write_runs((batch,), BATCH, folder)

    def _measurements(self) -> Measurements:
        loaded = self._loaded
        roofs = self._roofs()
        self._say("sweep over tokens")
        stopwatch = Stopwatch(self._runner.runner.clock)
        points = sweep_tokens(TorchBackend(loaded.model), stopwatch, SWEPT_TOKENS)
        self._say("sweep over batches")
        plan = check_sweep(SWEPT_BATCHES, SWEPT_CONTEXTS)
        *_, batches = sweep_batches(loaded, stopwatch, plan)
        if points is None:
            msg = "the sweep over tokens was stopped"
            raise BackendError(msg)
        return Measurements(ceilings=roofs, tokens=dated_sweep(loaded, points), batches=batches)

    def _roofs(self) -> MeasuredCeilings:
        """Return the highest of several measurements of the roofs, up to the first quiet one."""
        device, dtype = self._loaded.model.device, DTYPES[self._loaded.device.dtype]
        best: MeasuredCeilings | None = None
        for attempt in range(self._tries):
            self._say(f"roofs, attempt {attempt + 1}")
            measured = _measured(device, dtype)
            if best is None or _height(measured) > _height(best):
                best = measured
            if not best.is_disturbed:
                break
        if best is None:
            msg = "no roofs were measured; give at least one try"
            raise BackendError(msg)
        return best

    def _quiet_run(self, order: RunOrder) -> RunTrace:
        """Return a run that nothing disturbed, or after all tries the one disturbed least."""
        best: RunTrace | None = None
        for attempt in range(self._tries):
            self._say(f"{order.prompts[0][:40]!r}, attempt {attempt + 1}")
            trace = self._run(order)
            if best is None or disturbance(trace) < disturbance(best):
                best = trace
            if not disturbance(best):
                break
        if best is None:
            msg = "no run was made; give at least one try"
            raise BackendError(msg)
        self._say(f"kept with {disturbance(best)} of {len(best.events)} steps disturbed")
        return best

    def _run(self, order: RunOrder) -> RunTrace:
        requests = build_requests(order, self._codec, self._loaded.context_limit)
        trace = self._runner.run(requests, seed=order.seed, options=generation_options(order))
        if trace.message:
            raise BackendError(trace.message)
        return trace


def disturbance(trace: RunTrace) -> int:
    """Return how many things of a run would need a word of excuse; 0 for a quiet one."""
    disturbed = sum(map(is_disturbed, trace.events))
    return disturbed + len(steps_above_roofs(trace)) + len(notes_of(trace))


def steps_above_roofs(trace: RunTrace) -> tuple[int, ...]:
    """Return the steps of a run that lie above its roofs, whole or in part."""
    return tuple(event.index for event in trace.events if _is_above(trace, event.index))


def _is_above(trace: RunTrace, index: int) -> bool:
    event, roofs = trace.events[index], trace.info.ceilings
    if roofs is None or not trace.info.shape.matrices:
        return False
    cost = step_cost(
        trace.info.shape, [(row.query_tokens, row.context_tokens) for row in event.rows]
    )
    timed = [(Part.STEP, event.duration_s), *((one.part, one.duration_s) for one in event.parts)]
    points = (roofline_point(work_of(cost, part), seconds, roofs) for part, seconds in timed)
    return any(point is not None and bool(point.alarm) for point in points)


def _measured(device: torch.device, dtype: torch.dtype) -> MeasuredCeilings:
    measured = measure_ceilings(device, dtype)
    if measured is None:
        msg = "the measurement of the roofs was stopped"
        raise BackendError(msg)
    return measured


def _height(measured: MeasuredCeilings) -> float:
    """Return a number that grows with both roofs."""
    return measured.ceilings.bytes_per_s * measured.ceilings.flops_per_s


def _order(prompts: Iterable[str], tokens: int, split_every: int | None = None) -> RunOrder:
    return RunOrder(
        prompts=tuple(prompts),
        max_new_tokens=tokens,
        sampling=Sampling(temperature=0.0),
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
        split_every=split_every,
        is_prefill_split=False,
    )


def _batch_order(prompts: list[str]) -> RunOrder:
    arrivals_s = tuple(BATCH_GAP_S * number for number in range(len(prompts)))
    return replace(_order(prompts, BATCH_TOKENS), plan=BATCH_PLAN, arrivals_s=arrivals_s)


def _example_prompts() -> list[str]:
    """Return the example prompts that stand in the list itself, by their place in it."""
    entries = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return [entry["prompt"] for entry in entries if "prompt" in entry]
