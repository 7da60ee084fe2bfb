"""What a run's samples and step times say of its device: energy, launches, rates, and disturbances.

Pure: a trace in, numbers and sentences out. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, median

import numpy as np

from inference.counting.costs import step_cost
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from inference.records.telemetry import TelemetrySample

# Chosen: each end of a span is known to one interval of the counter only; beyond a fifth not even
# the first digit of its energy means much.
MOST_UNCERTAIN = 0.2
# Chosen: time that the counter does not cover is filled in at the mean rate; up to a tenth of it
# that stays within the uncertainty above.
LEAST_COVERED = 0.9
# Chosen: a host that needs nine tenths of the step time to launch its work leaves the device no
# queue to work from.
BEHIND_RATIO = 0.9
# Set by people or by the way several GPUs work together; nothing that happened to the run.
CHOSEN_CLOCKS = frozenset(
    {"clocks set by the user", "display clock", "kept in step with other GPUs"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnergy:
    """Energy of the whole GPU while one phase went on.

    Attributes:
        tokens: Fed in prefill, or selected in decode.
        seconds: Host time of the phase's steps, short gaps between them included.
        energy_j: None where it is not known.
        interval_s: How often the counter moves; None when there is none.
        uncertain_ratio: The most that ``energy_j`` may be off, since the counter is that coarse.
        reason: Why there is no energy; empty otherwise.
    """

    phase: Phase
    tokens: int
    seconds: float
    energy_j: float | None = None
    interval_s: float | None = None
    uncertain_ratio: float | None = None
    reason: str = ""

    @property
    def joules_per_token(self) -> float | None:
        """Energy of one token; None where it is not known."""
        if self.energy_j is None or not self.tokens:
            return None
        return self.energy_j / self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLead:
    """How far the host was ahead of the device in decode steps, at the median.

    Attributes:
        steps: How many it rests on.
        host_s: Host time until a step's work was launched.
        step_time_s: The same step's whole time.
    """

    steps: int
    host_s: float
    step_time_s: float

    @property
    def ratio(self) -> float:
        """Share of the step time in which the host was still launching work."""
        return self.host_s / self.step_time_s

    @property
    def is_behind(self) -> bool:
        """True when the device had to wait for the host."""
        return self.ratio >= BEHIND_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """What decode steps really moved and computed, beside how busy the driver says the GPU was.

    Attributes:
        bytes_per_s: Bytes that the steps had to move, per second of their step times.
        flops_per_s: FLOPs that they had to compute, likewise.
        bytes_ratio: Share of the measured memory roof; None when it was not measured.
        flops_ratio: Share of the measured arithmetic roof, likewise.
        busy_ratio: NVML: share of time in which any kernel ran, mean over the decode steps.
        controller_ratio: NVML: share of time in which memory was read or written at all.
    """

    bytes_per_s: float
    flops_per_s: float
    bytes_ratio: float | None
    flops_ratio: float | None
    busy_ratio: float | None
    controller_ratio: float | None


def energy_by_phase(trace: RunTrace) -> tuple[PhaseEnergy, ...]:
    """Return the energy of prefill and of decode, each None with a reason where it is not known.

    The counter is read ten times a second or so and moves in steps of its own, so a phase needs
    some seconds for its energy to mean something. What other programs and the idle device take
    meanwhile is in it.
    """
    counter = _Counter(trace.telemetry)
    return tuple(_phase_energy(trace.events, phase, counter) for phase in Phase)


def host_lead(events: Iterable[StepEvent]) -> HostLead | None:
    """Return how far the host was ahead in decode steps; None where that was not timed."""
    timed = [
        (event.host_s, event.duration_s)
        for event in _plain_decodes(events)
        if event.host_s is not None and event.duration_s > 0
    ]
    if not timed:
        return None
    hosts, timings = zip(*timed, strict=True)
    return HostLead(steps=len(timed), host_s=median(hosts), step_time_s=median(timings))


def achieved(trace: RunTrace) -> Achieved | None:
    """Return the rates of the run's decode steps; None before the first, and for unknown shapes."""
    events = [event for event in _plain_decodes(trace.events) if event.duration_s > 0]
    costs = [_work(trace.info.shape, event) for event in events]
    counted = [cost for cost in costs if cost is not None]
    if not counted or len(counted) < len(costs):
        return None
    seconds = fsum(event.duration_s for event in events)
    bytes_per_s = sum(moved for moved, _ in counted) / seconds
    flops_per_s = sum(flops for _, flops in counted) / seconds
    roofs = trace.info.ceilings
    samples = _within(trace.telemetry, events)
    return Achieved(
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        bytes_ratio=None if roofs is None else bytes_per_s / roofs.bytes_per_s,
        flops_ratio=None if roofs is None else flops_per_s / roofs.flops_per_s,
        busy_ratio=_mean(sample.gpu_busy_ratio for sample in samples),
        controller_ratio=_mean(sample.memory_controller_busy_ratio for sample in samples),
    )


def notes_of(trace: RunTrace) -> tuple[str, ...]:
    """Return a sentence for each thing that makes the run another than it seems."""
    notes = (
        _decode_note(trace),
        _throttle_note(trace.telemetry),
        _company_note(trace.telemetry),
    )
    return tuple(note for note in notes if note)


def _decode_note(trace: RunTrace) -> str:
    if trace.info.decode_note:
        return f"Decode steps were eager, not as asked: {trace.info.decode_note}."
    if trace.info.decode is DecodeMode.EAGER:
        return ""
    left = sum(event.decode is DecodeMode.EAGER for event in trace.events)
    if not left:
        return ""
    return (
        f"{left} decode step{'s' * (left != 1)} ran eagerly, not as {trace.info.decode}, so that "
        "attention could be captured or parts timed; they are marked as observed."
    )


def _throttle_note(samples: Sequence[TelemetrySample]) -> str:
    readings = [one.throttle_reasons for one in samples if one.throttle_reasons is not None]
    held = [set(words) - CHOSEN_CLOCKS for words in readings]
    count = sum(bool(words) for words in held)
    if not count:
        return ""
    why = ", ".join(sorted(set[str]().union(*held)))
    return (
        f"The GPU's clocks were held down in {count} of {len(readings)} samples ({why}), so steps "
        "took longer than they could."
    )


def _company_note(samples: Sequence[TelemetrySample]) -> str:
    readings = [one.other_programs for one in samples if one.other_programs is not None]
    shared = [count for count in readings if count]
    if not shared:
        return ""
    most = max(shared)
    programs = "another program" if most == 1 else f"up to {most} other programs"
    return (
        f"{programs[0].upper()}{programs[1:]} had the GPU open in {len(shared)} of {len(readings)} "
        "readings, so busy time, memory, energy and step times may not be this run's alone."
    )


class _Counter:
    """The energy counter over host time.

    Attributes:
        interval_s: How often it moves, as far as the samples tell; None when it does not.
    """

    def __init__(self, samples: Iterable[TelemetrySample]) -> None:
        read = [(one.at_s, one.energy_j) for one in samples if one.energy_j is not None]
        self._at_s = np.array([at_s for at_s, _ in read], dtype=np.float64)
        self._energy_j = np.array([energy for _, energy in read], dtype=np.float64)
        self.interval_s: float | None = None
        if len(read) > 1:
            moved_at = self._at_s[1:][np.diff(self._energy_j) > 0]
            if len(moved_at) > 1:
                self.interval_s = float(np.median(np.diff(moved_at)))

    def covered(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Return the energy between two moments and for how many seconds of them it is known."""
        start_s, end_s = max(start_s, self._at_s[0]), min(end_s, self._at_s[-1])
        if end_s <= start_s:
            return 0.0, 0.0
        first, last = np.interp([start_s, end_s], self._at_s, self._energy_j)
        return float(last - first), float(end_s - start_s)


def _phase_energy(events: Sequence[StepEvent], phase: Phase, counter: _Counter) -> PhaseEnergy:
    steps = [event for event in events if event.phase is phase]
    interval_s = counter.interval_s
    spans = list(_spans(events, phase, interval_s or 0.0))
    known = PhaseEnergy(
        phase=phase,
        tokens=_tokens(steps, phase),
        seconds=fsum(end_s - start_s for start_s, end_s in spans),
        interval_s=interval_s,
    )
    if not steps:
        return _without(known, "no such step yet")
    if interval_s is None:
        return _without(known, "the GPU's energy counter was not read, or did not move")
    parts = [counter.covered(*span) for span in spans]
    energy_j, covered_s = fsum(one for one, _ in parts), fsum(one for _, one in parts)
    uncertain = 2 * len(spans) * interval_s / covered_s if covered_s else 1.0
    if uncertain > MOST_UNCERTAIN or covered_s < LEAST_COVERED * known.seconds:
        needed_s = 2 * len(spans) * interval_s / MOST_UNCERTAIN
        reason = f"it took {known.seconds:.2g} s; the counter moves every {interval_s:.2g} s, so "
        reason += f"{needed_s:.2g} s are needed"
        return _without(known, reason)
    return PhaseEnergy(
        phase=phase,
        tokens=known.tokens,
        seconds=known.seconds,
        energy_j=energy_j * known.seconds / covered_s,
        interval_s=interval_s,
        uncertain_ratio=uncertain,
    )


def _without(known: PhaseEnergy, reason: str) -> PhaseEnergy:
    return PhaseEnergy(
        phase=known.phase,
        tokens=known.tokens,
        seconds=known.seconds,
        interval_s=known.interval_s,
        reason=reason,
    )


def _spans(
    events: Iterable[StepEvent], phase: Phase, longest_gap_s: float
) -> Iterator[tuple[float, float]]:
    """Yield the stretches of host time in which steps of a phase followed each other closely."""
    start_s = end_s = None
    for event in events:
        is_next = end_s is not None and event.started_s - end_s <= longest_gap_s
        if start_s is not None and end_s is not None and (event.phase is not phase or not is_next):
            yield start_s, end_s
            start_s = end_s = None
        if event.phase is phase:
            start_s = event.started_s if start_s is None else start_s
            end_s = event.started_s + event.duration_s
    if start_s is not None and end_s is not None:
        yield start_s, end_s


def _tokens(steps: Iterable[StepEvent], phase: Phase) -> int:
    if phase is Phase.PREFILL:
        return sum(event.query_tokens for event in steps)
    return sum(row.token_id is not None for event in steps for row in event.rows)


def _plain_decodes(events: Iterable[StepEvent]) -> Iterator[StepEvent]:
    return (one for one in events if one.phase is Phase.DECODE and not one.observed | one.cold)


def _work(shape: ModelShape, event: StepEvent) -> tuple[int, int] | None:
    """Return the bytes and FLOPs that a step had to move and compute; None for unknown shapes."""
    try:
        cost = step_cost(shape, event.rows)
    except InputError:
        return None
    return cost.bytes_moved, cost.flops


def _within(
    samples: Iterable[TelemetrySample], events: Sequence[StepEvent]
) -> list[TelemetrySample]:
    start_s, end_s = events[0].started_s, events[-1].started_s + events[-1].duration_s
    return [sample for sample in samples if start_s <= sample.at_s <= end_s]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
