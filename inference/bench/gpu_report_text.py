"""The report of one device, and its Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from inference.bench.gpu_checks import Check
from inference.bench.gpu_plan import Pace
from inference.bench.gpu_speeds import BatchSpeed, Speed
from inference.records.costs import Ceilings
from inference.records.model import Device


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
class BatchRow:
    """Tokens a second of a number of rows, or why there are none."""

    rows: int
    tokens_per_s: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The checks and figures of one device, as far as they have come.

    Attributes:
        device: None until a model was loaded.
        made_at: UTC.
        pace: What one step took, by which everything was sized; None where that is not known.
        left_out: What was measured in a smaller size than where there is time, in a few words.
        pending: Stages that are still to come; empty in a report that is complete.
        reading_cost_s: What one telemetry sample takes; None where it was not measured.
        unread: Telemetry readings that are missing, with the reason.
        has_tf32: torch was set to compute float32 products in TF32.
        budget_s: What all of it may take.
        seconds: What it has taken, loading included.
    """

    subject: ReportRequest
    device: Device | None
    device_note: str
    machine: str
    versions: tuple[tuple[str, str], ...]
    made_at: datetime
    pace: Pace | None
    left_out: tuple[str, ...]
    pending: tuple[str, ...]
    checks: tuple[Check, ...]
    speeds: tuple[Speed, ...]
    batches: tuple[BatchRow, ...]
    ceilings: Ceilings | None
    reading_cost_s: float | None
    unread: tuple[tuple[str, str], ...]
    has_tf32: bool
    budget_s: float
    seconds: float

    @property
    def is_good(self) -> bool:
        """True when no check failed and nothing ended in an error."""
        return all(check.is_passed is not False and not check.is_broken for check in self.checks)


def batch_row(batch: BatchSpeed) -> BatchRow:
    """Return a batch without its run."""
    return BatchRow(rows=batch.rows, tokens_per_s=batch.tokens_per_s, note=batch.note)


def report_text(report: Report) -> str:
    """Return the report as Markdown."""
    device = report.device.name if report.device is not None else "a device without a model"
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    lines = [
        f"# {report.subject.model} on {device}",
        "",
        *(["**A dry run: everything is tiny and no figure below means anything.**", ""]
          if report.subject.is_dry else []),
        *(["**Not complete.** Still to come, or lost with the program: "
           f"{', '.join(report.pending)}.", ""] if report.pending else []),
        f"{report.made_at:%Y-%m-%d %H:%M} UTC. {report.machine}; {versions}. {report.device_note}",
        *_size_lines(report),
        f"TF32 for float32 products was {'on' if report.has_tf32 else 'off'} in torch's settings; "
        "float32 checks and roofs are made with it off.",
        "",
        "| check | result | finding |",
        "|---|---|---|",
        *(f"| {one.name} | {_mark(one)} | {one.finding} |" for one in report.checks),
        "",
        *_speed_lines(report.speeds),
        *_batch_lines(report.batches),
        *_roof_lines(report.ceilings),
        *_telemetry_lines(report),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _mark(check: Check) -> str:
    if check.is_broken:
        return "ERROR"
    if check.is_left_out:
        return "left out"
    return {True: "pass", False: "FAIL", None: "not judged"}[check.is_passed]


def _size_lines(report: Report) -> Iterator[str]:
    if report.pace is not None and not report.subject.is_dry:
        yield (
            f"Sized by one eager step of {report.pace.step_s * 1e3:.1f} ms for at most "
            f"{report.budget_s:.0f} s."
        )
    if report.left_out:
        yield f"Less than where there is time: {'; '.join(report.left_out)}."
    yield f"All of it has taken {report.seconds:.0f} s, loading included."


def _speed_lines(speeds: tuple[Speed, ...]) -> Iterator[str]:
    if not speeds:
        return
    yield "| one row | tokens/s, whole run | tokens/s, decode steps | host's share | GPU busy | J/token | tokens behind busy time and J/token |"  # noqa: E501  a row of Markdown
    yield "|---|---|---|---|---|---|---|"
    for speed in speeds:
        yield _speed_line(speed)
    yield ""
    yield (
        "Whole run: from the start of the first step to the end of the last. What this program "
        "records between two steps (candidates, entropy, telemetry) is in it, and generate() "
        "records nothing. Decode steps: their step times alone. Busy time and energy are of a "
        "longer run where decode is short."
    )
    for speed in speeds:
        yield from (f"Not known of {speed.name}: {reason}." for reason in speed.unknown)
    yield ""


def _speed_line(speed: Speed) -> str:
    if speed.note:
        return f"| {speed.name} | not measured: {speed.note} | | | | | |"
    cells = (
        speed.name,
        _number(speed.tokens_per_s),
        _number(speed.decode_tokens_per_s),
        _share(speed.host_ratio),
        _share(speed.busy_ratio),
        "" if speed.joules_per_token is None else f"{speed.joules_per_token:.3g}",
        "" if speed.steady_tokens is None else f"{speed.steady_tokens:,}",
    )
    return f"| {' | '.join(cells)} |"


def _batch_lines(batches: tuple[BatchRow, ...]) -> Iterator[str]:
    if not batches:
        return
    yield "| rows | tokens/s, decode steps |"
    yield "|---|---|"
    for one in batches:
        yield f"| {one.rows} | {f'not measured: {one.note}' if one.note else _number(one.tokens_per_s)} |"  # noqa: E501  a row of Markdown
    yield ""


def _roof_lines(ceilings: Ceilings | None) -> Iterator[str]:
    if ceilings is not None:
        flops, moved = ceilings.flops_per_s / 1e12, ceilings.bytes_per_s / 1e12
        yield f"Roofs: {flops:.3g} TFLOP/s and {moved:.3g} TB/s, {ceilings.method}."


def _telemetry_lines(report: Report) -> Iterator[str]:
    if report.reading_cost_s is not None:
        cost_ms = report.reading_cost_s * 1e3
        yield f"One telemetry sample takes {cost_ms:.2f} ms on a thread of its own."
    names: dict[str, list[str]] = {}
    for name, reason in report.unread:
        names.setdefault(reason, []).append(name)
    for reason, unread in names.items():
        yield f"Not read: {', '.join(unread)}: {reason}."


def _share(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.0%}"


def _number(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"
