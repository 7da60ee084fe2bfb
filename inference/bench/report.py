"""Everything that ``bench`` measures, in one typed report."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from inference.bench import page, sections
from inference.bench.disturbance import (
    DisturbanceFigures,
    disturbance_targets,
    measure_disturbance,
)
from inference.bench.llama_cpp import llama_tokens_per_s
from inference.bench.rounds import Target
from inference.bench.sections import BatchFigures, ContextFigures, Plan, SweepFigures
from inference.calibration.ceilings import machine_name
from inference.calibration.ceilings_store import ceilings_for
from inference.engine.clock import clock_for
from inference.models.loading import LoadedModel, OnStage, load_model
from inference.process.runner import library_versions
from inference.records.status import LoadStage

NO_PAGE = "the page was not measured: it starts with the default model, dtype and device"
DEFAULTS = ("default", "auto", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """What is to be measured.

    Attributes:
        model: As ``load_model`` takes it, and so are dtype and device.
        is_quick: Fewer rounds, fewer contexts, and roofs kept from an earlier call.
        rounds: Turns of each subject; None for the usual number.
        llama: The programs ``llama-bench`` and the GGUF file that it is given; None for neither.
    """

    model: str
    dtype: str
    device: str
    is_quick: bool
    rounds: int | None
    llama: tuple[Path, Path] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAverage:
    """Processes that ran or waited to, in the last one, five and fifteen minutes."""

    before: tuple[float, float, float]
    after: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """The figures of one call of ``bench``.

    Attributes:
        measured_at: UTC, as ISO 8601.
        memory_roof_bytes_per_s: None where it could not be measured.
        load_stages_s: Seconds by stage.
        disturbance: None where the system does not count how long a thread waits for a processor.
        page: None where the page was not measured; ``not_measured`` says why.
        llama_cpp_tokens_per_s: None where no ``llama-bench`` was given.
    """

    measured_at: str
    machine: str
    load_average: LoadAverage
    versions: dict[str, str]
    model: str
    dtype: str
    kernels: str
    plan: Plan
    memory_roof_bytes_per_s: float | None
    load_stages_s: dict[str, float]
    decode: tuple[ContextFigures, ...]
    batch: tuple[BatchFigures, ...]
    sweep: tuple[SweepFigures, ...]
    bytes_kept_per_step: float
    disturbance: DisturbanceFigures | None
    page: page.PageFigures | None
    llama_cpp_tokens_per_s: float | None
    targets: tuple[Target, ...]
    not_measured: str


def as_json(report: BenchReport) -> dict[str, Any]:
    """Return a report as JSON values, each target with whether it is met."""
    targets = [asdict(target) | {"is_met": target.is_met} for target in report.targets]
    return asdict(report) | {"targets": targets}


def measure(request: BenchRequest, import_s: float, on_stage: OnStage) -> BenchReport:
    """Load the model, measure everything, and return the report.

    Args:
        request: What is to be measured.
        import_s: What importing torch and transformers took.
        on_stage: Takes what is being measured.
    """

    def on_progress(ratio: float, text: str) -> None:
        on_stage(LoadStage(stage=text, ratio=ratio))

    before = os.getloadavg()
    loaded, stages = _load(request, on_stage)
    device, dtype = loaded.model.device, loaded.model.dtype
    clock = clock_for(device)
    plan = sections.QUICK if request.is_quick else sections.FULL
    plan = replace(plan, rounds=request.rounds or plan.rounds)
    roofs = ceilings_for(device, dtype, on_progress, is_fresh=not request.is_quick)
    memory_roof = roofs.ceilings.bytes_per_s if roofs is not None else None
    contexts = sections.measure_contexts(loaded, clock, plan, memory_roof, on_progress)
    batches = sections.measure_batches(loaded, clock, plan, on_progress)
    sweep = sections.measure_sweep(loaded, clock, plan, roofs, on_progress)
    on_stage(LoadStage(stage="memory that a step keeps"))
    kept_bytes = sections.bytes_per_step(loaded, clock)
    found = measure_disturbance(loaded, clock, plan.rounds, on_progress)
    on_stage(LoadStage(stage="the page, with nobody, a viewer and a browser"))
    is_default = (request.model, request.dtype, request.device) == DEFAULTS
    figures = page.measure_page(plan.page_rounds) if is_default else NO_PAGE
    page_figures = None if isinstance(figures, str) else figures
    llama_rate = None if request.llama is None else llama_tokens_per_s(*request.llama)
    targets = sections.targets(contexts, batches, kept_bytes)
    targets += [*disturbance_targets(found), *page.page_targets(page_figures)]
    return BenchReport(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine_name(device),
        load_average=LoadAverage(before=before, after=os.getloadavg()),
        versions=dict(library_versions()),
        model=loaded.model_id,
        dtype=loaded.device.dtype,
        kernels=loaded.kernels,
        plan=plan,
        memory_roof_bytes_per_s=memory_roof,
        load_stages_s={"importing torch and transformers": import_s} | stages,
        decode=tuple(contexts),
        batch=tuple(batches),
        sweep=tuple(sweep),
        bytes_kept_per_step=kept_bytes,
        disturbance=found,
        page=page_figures,
        llama_cpp_tokens_per_s=llama_rate,
        targets=tuple(targets),
        not_measured=figures if isinstance(figures, str) else "",
    )


def _load(request: BenchRequest, on_stage: OnStage) -> tuple[LoadedModel, dict[str, float]]:
    """Load the model; return it, and the seconds of each stage."""
    began: list[tuple[str, float]] = []

    def note(stage: LoadStage) -> None:
        if not began or began[-1][0] != stage.stage:
            began.append((stage.stage, perf_counter()))
        on_stage(stage)

    loaded = load_model(request.model, dtype=request.dtype, device=request.device, on_stage=note)
    ends = [moment for _, moment in began[1:]]
    return loaded, {name: end - start for (name, start), end in zip(began, ends, strict=False)}
