"""One pass over a device that checks what the program says of it, and records runs on the way.

Needs torch, transformers, psutil and nvidia-ml-py, a model folder, and no network.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from inference.bench.gpu_checks import (
    Check,
    allocator_of,
    cache_bytes,
    roofs_in_bounds,
    same_as_eager,
    same_ids,
    step_times_do_not_overlap,
    step_times_fill_the_wall,
)
from inference.bench.gpu_setup import Bench, Sizes, decoding, load_bench
from inference.bench.gpu_speeds import BatchSpeed, Speed, batch_speeds, decode_energy, speeds
from inference.bench.gpu_speeds import reading_cost_s as measured_reading_cost
from inference.calibration.ceilings import measure_ceilings
from inference.models.devices import DTYPES
from inference.models.loading import OnStage
from inference.process.runner import library_versions
from inference.records.costs import Ceilings
from inference.records.model import Device
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.status import LoadStage
from inference.runs.plain_run_file import plain, write_run_file
from inference.storage.atomic_write import replace_file

# Source: our choice, for an end well inside five minutes.
TIME_FOR_SWEEP_S = 200.0
MODES = (DecodeMode.EAGER, DecodeMode.GRAPH)
RUN_FILE, SWEEP_FILE, REPORT_FILE, DATA_FILE = (
    "device-run.json.gz",
    "device-batch-sweep.json.gz",
    "report.md",
    "report.json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What is to be reported on.

    Attributes:
        model: A model folder, or a name that is on this machine.
        device: As ``choose_device`` takes it.
        is_dry: Everything is tiny, and the figures mean nothing.
        has_compiled: Measure ``torch.compile`` too, which may take minutes.
    """

    model: str
    device: str = "auto"
    is_dry: bool = False
    has_compiled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The checks and figures of one device.

    Attributes:
        made_at: UTC.
        batches: Pairs of rows and tokens a second.
        energy_note: Why the energy of the last way to decode is unknown; empty when it is known.
        reading_cost_s: What one telemetry sample takes.
        unread: Telemetry readings that are missing, with the reason.
        seconds: What all of it took.
    """

    subject: ReportRequest
    device: Device
    device_note: str
    machine: str
    versions: tuple[tuple[str, str], ...]
    made_at: datetime
    checks: tuple[Check, ...]
    speeds: tuple[Speed, ...]
    batches: tuple[tuple[int, float | None], ...]
    energy_note: str
    ceilings: Ceilings | None
    reading_cost_s: float
    unread: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def is_good(self) -> bool:
        """True when no check failed."""
        return all(check.is_passed is not False for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What was timed, with the runs it was timed in."""

    timed: tuple[tuple[Speed, RunTrace | None], ...]
    batches: tuple[BatchSpeed, ...]

    @property
    def runs(self) -> tuple[RunTrace, ...]:
        """The last run of each way to decode one row."""
        return tuple(trace for _, trace in self.timed if trace is not None)

    @property
    def all_runs(self) -> tuple[RunTrace, ...]:
        """Those and the batches'."""
        return (*self.runs, *(batch.trace for batch in self.batches))


def make_report(subject: ReportRequest, sizes: Sizes, folder: Path, on_stage: OnStage) -> Report:
    """Measure, write the report and the recorded runs into the folder, and return the report.

    Raises:
        InputError, OutOfMemoryError: The model or the device cannot be used.
        BackendError: A run of a check did not get to its end.
    """
    checks = _float32_checks(subject, sizes, on_stage)
    on_stage(LoadStage(stage="loading the model in the device's usual dtype"))
    bench = load_bench(subject.model, subject.device, "auto", sizes, on_stage)
    began_s = bench.clock.now_s()
    modes = (*MODES, DecodeMode.COMPILED) if subject.has_compiled else MODES
    checks += _usual_checks(bench, modes, on_stage)
    measured = _timed(bench, modes, began_s, on_stage)
    checks.append(step_times_do_not_overlap(measured.all_runs))
    cost_s, reasons = measured_reading_cost(bench)
    report = Report(
        subject=replace(subject, model=bench.loaded.model_id),
        device=bench.loaded.device,
        device_note=bench.loaded.device_note,
        machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        versions=library_versions(),
        made_at=datetime.now(UTC),
        checks=tuple(checks),
        speeds=tuple(speed for speed, _ in measured.timed),
        batches=tuple((batch.rows, batch.tokens_per_s) for batch in measured.batches),
        energy_note=decode_energy(measured.runs[-1]).reason if measured.runs else "nothing ran",
        ceilings=bench.headless.ceilings,
        reading_cost_s=cost_s,
        unread=tuple(sorted(reasons.items())),
        seconds=bench.clock.now_s() - began_s,
    )
    bench.close()
    _write(folder, report, measured)
    return report


def _usual_checks(bench: Bench, modes: Iterable[DecodeMode], on_stage: OnStage) -> list[Check]:
    """Return the checks in the device's usual dtype; the bench keeps the roofs measured."""
    checks: list[Check] = []
    for mode in modes:
        if mode is not DecodeMode.EAGER:
            on_stage(LoadStage(stage=f"{mode} steps against eager ones"))
            checks.append(same_as_eager(bench, mode))
    on_stage(LoadStage(stage="cache bytes and step times"))
    checks += [cache_bytes(bench, allocator_of(bench.device)), step_times_fill_the_wall(bench)]
    on_stage(LoadStage(stage="roofs"))
    dtype = DTYPES[bench.loaded.device.dtype]
    roofs = measure_ceilings(bench.device, dtype, plan=bench.sizes.plan(bench.device))
    if roofs is not None:
        checks.append(roofs_in_bounds(roofs))
        bench.headless.ceilings = roofs.ceilings
    return checks


def _timed(
    bench: Bench, modes: tuple[DecodeMode, ...], began_s: float, on_stage: OnStage
) -> _Measured:
    """Return the ways to decode side by side, and batches in the fastest while there is time."""
    on_stage(LoadStage(stage="speeds side by side"))
    timed = tuple(speeds(bench, modes))
    on_stage(LoadStage(stage="batches"))

    def has_time() -> bool:
        return bench.clock.now_s() - began_s < TIME_FOR_SWEEP_S

    batches = tuple(batch_speeds(bench, decoding(_best_mode(timed)), has_time))
    return _Measured(timed=timed, batches=batches)


def _float32_checks(subject: ReportRequest, sizes: Sizes, on_stage: OnStage) -> list[Check]:
    """Return the checks for which rounding must not matter, and drop their models again."""
    on_stage(LoadStage(stage="loading the model in float32, on the device and on the CPU"))
    device = load_bench(subject.model, subject.device, "float32", sizes, on_stage)
    host = load_bench(subject.model, "cpu", "float32", sizes, on_stage)
    on_stage(LoadStage(stage="ids on the device against the CPU's"))
    checks = [same_ids(device, host), same_as_eager(device, DecodeMode.GRAPH)]
    device.close()
    host.close()
    return checks


def _best_mode(timed: Iterable[tuple[Speed, RunTrace | None]]) -> DecodeMode:
    """Return the way to decode that was fastest."""
    rates = [
        (speed.decode_tokens_per_s, trace.info.decode)
        for speed, trace in timed
        if trace is not None and speed.decode_tokens_per_s is not None
    ]
    return max(rates)[1] if rates else DecodeMode.EAGER


def _write(folder: Path, report: Report, measured: _Measured) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if measured.runs:
        write_run_file(measured.runs, folder / RUN_FILE)
    if measured.batches:
        write_run_file([batch.trace for batch in measured.batches], folder / SWEEP_FILE)
    replace_file(folder / REPORT_FILE, report_text(report).encode())
    replace_file(folder / DATA_FILE, json.dumps(plain(report), indent=1).encode())


def report_text(report: Report) -> str:
    """Return the report as Markdown."""
    marks = {True: "pass", False: "FAIL", None: "not applicable"}
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    lines = [
        f"# {report.subject.model} on {report.device.name}",
        "",
        *(["**A dry run: everything is tiny and no figure below means anything.**", ""]
          if report.subject.is_dry else []),
        f"{report.made_at:%Y-%m-%d %H:%M} UTC. {report.machine}; {versions}. {report.device_note}",
        f"Everything after the float32 checks took {report.seconds:.0f} s.",
        "",
        "| check | result | finding |",
        "|---|---|---|",
        *(f"| {one.name} | {marks[one.is_passed]} | {one.finding} |" for one in report.checks),
        "",
        "| one row | tokens/s, whole run | tokens/s, decode steps | host's share | J/token |",
        "|---|---|---|---|---|",
        *(_speed_line(speed) for speed in report.speeds),
        "",
        "| rows | tokens/s, decode steps |",
        "|---|---|",
        *(f"| {rows} | {_number(rate)} |" for rows, rate in report.batches),
        "",
        *_roof_lines(report.ceilings),
        *([f"Energy per token: unknown ({report.energy_note})."] if report.energy_note else []),
        f"One telemetry sample takes {report.reading_cost_s * 1e3:.2f} ms on a thread of its own.",
        *(f"Not read: {name}: {reason}." for name, reason in report.unread),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _speed_line(speed: Speed) -> str:
    if speed.note:
        return f"| {speed.name} | not measured: {speed.note} | | | |"
    share = "" if speed.host_ratio is None else f"{speed.host_ratio:.0%}"
    whole, decode = _number(speed.tokens_per_s), _number(speed.decode_tokens_per_s)
    joules = "" if speed.joules_per_token is None else f"{speed.joules_per_token:.3g}"
    return f"| {speed.name} | {whole} | {decode} | {share} | {joules} |"


def _roof_lines(ceilings: Ceilings | None) -> list[str]:
    if ceilings is None:
        return []
    flops, moved = ceilings.flops_per_s / 1e12, ceilings.bytes_per_s / 1e12
    return [f"Roofs: {flops:.3g} TFLOP/s and {moved:.3g} TB/s, {ceilings.method}."]


def _number(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"
