"""What a soak has shown: memory, descriptors, threads and disk over hours, and every run's end.

Pure: samples in, findings out. A process is compared with itself: from its tenth minute on, when
its caches are full, the first minutes with the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

WARM_MINUTES = 10.0
WINDOW_MINUTES = 10.0
MOST_GROWTH = 0.05
LEAST_MINUTES = 10.0  # beyond the warm ones, to tell anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One process at rest."""

    process_id: int
    memory_bytes: int
    descriptors: int
    threads: int
    processor_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server at rest.

    Attributes:
        minute: Since the server was up.
        model: What the engine holds.
        disk_bytes: Of kept runs.
    """

    minute: float
    app: Reading
    engine: Reading | None
    model: str
    disk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """A run that was started.

    Attributes:
        is_as_meant: It ended as it should and is kept with its steps.
        words: How it ended.
    """

    minute: float
    is_as_meant: bool
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the verdict."""

    name: str
    words: str
    is_good: bool


def verdict(
    samples: Sequence[Sample],
    runs: Sequence[RunEnd],
    complaints: Sequence[str],
    most_disk_bytes: int,
) -> tuple[Finding, ...]:
    """Return what was found, one line each; all good means that the soak was passed.

    Args:
        samples: In the order of time.
        runs: All that were started.
        complaints: What pages and the server's log said that they should not.
        most_disk_bytes: What kept runs may take.
    """
    apps = [(sample.minute, sample.app) for sample in samples]
    findings = [*_process_findings("app", [apps])]
    usual = samples[0].model if samples else ""
    findings += _process_findings("engine", _lives(samples, usual))
    largest = max((sample.disk_bytes for sample in samples), default=0)
    lost = [run for run in runs if not run.is_as_meant]
    findings += [
        Finding(
            "disk",
            f"kept runs took {largest / 1e6:.1f} MB at most, of {most_disk_bytes / 1e6:.0f} MB",
            largest <= most_disk_bytes,
        ),
        Finding(
            "runs",
            f"{len(runs)} runs, {len(lost)} lost"
            + "".join(f"; minute {run.minute:.0f}: {run.words}" for run in lost[:5]),
            bool(runs) and not lost,
        ),
        Finding(
            "complaints", "none" if not complaints else "; ".join(complaints[:5]), not complaints
        ),
    ]
    return tuple(findings)


Point = tuple[float, Reading]


def _lives(samples: Sequence[Sample], model: str) -> list[list[Point]]:
    """Return the readings of each engine process in turn, while it held this model."""
    lives: dict[int, list[Point]] = {}
    for sample in samples:
        if sample.engine is not None and sample.model == model:
            lives.setdefault(sample.engine.process_id, []).append((sample.minute, sample.engine))
    return list(lives.values())


def _process_findings(name: str, lives: Iterable[Sequence[Point]]) -> list[Finding]:
    """Return how the lives of one kind of process went; those too short to tell are left out."""
    told = [life for life in lives if _is_long(life)]
    if not told:
        return [Finding(name, "no process lived long enough to tell", is_good=False)]
    findings: list[Finding] = []
    for number, life in enumerate(told, start=1):
        called = name if len(told) == 1 else f"{name} {number}"
        first, last = _windows(life)
        before = median(reading.memory_bytes for _, reading in first)
        after = median(reading.memory_bytes for _, reading in last)
        findings.append(
            Finding(
                f"{called} memory",
                f"{before / 2**20:,.0f} MiB, then {after / 2**20:,.0f} ({after / before - 1:+.1%})",
                after <= before * (1 + MOST_GROWTH),
            )
        )
        findings.append(_gained(f"{called} descriptors", first, last, _descriptors))
        findings.append(_gained(f"{called} threads", first, last, _threads))
    return findings


def _gained(
    name: str, first: Sequence[Point], last: Sequence[Point], count: Callable[[Reading], int]
) -> Finding:
    """Compare the least of each window: pools that grow at work shrink at rest, leaks do not."""
    before = min(count(reading) for _, reading in first)
    after = min(count(reading) for _, reading in last)
    return Finding(name, f"{before}, then {after}", after <= before)


def _descriptors(reading: Reading) -> int:
    return reading.descriptors


def _threads(reading: Reading) -> int:
    return reading.threads


def _is_long(life: Sequence[Point]) -> bool:
    return bool(life) and life[-1][0] - life[0][0] >= WARM_MINUTES + LEAST_MINUTES


def _windows(life: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """Return a life's first minutes once it is warm, and its last."""
    start, end = life[0][0] + WARM_MINUTES, life[-1][0]
    width = min(WINDOW_MINUTES, (end - start) / 2)
    first = [point for point in life if start <= point[0] <= start + width]
    last = [point for point in life if point[0] >= end - width]
    return first, last
