"""What a run's samples and step times say of its device: launches, rates, and disturbances.

Pure: a trace in, numbers and sentences out. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, median

from inference.counting.costs import step_cost
from inference.figures.disturbance import disturbance, undisturbed
from inference.figures.phase_spans import phase_spans
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.steps import Phase, StepEvent
from inference.records.telemetry import TelemetrySample

# Chosen: a host that needs nine tenths of the step time to launch its work leaves the device no
# queue to work from.
BEHIND_RATIO = 0.9
# Source: NVML API reference, nvmlUtilization_t: the sample period is between 1/6 and 1 second, so a
# reading may be of a second before it, which has prefill or an idle device in it.
AVERAGED_S = 1.0
# Chosen: a second of samples beyond the one that is left out.
LEAST_DECODE_S = 2.0
# Chosen: the interval of telemetry. A longer pause between two steps is seen as an idle device.
LONGEST_GAP_S = 0.1
# Chosen: cores that are busy for less have room for another thread, and a desktop at rest with its
# browser takes less of them than this.
FULL_RATIO = 0.95
OTHERS_RATIO = 0.1
# Set by people or by the way several GPUs work together; nothing that happened to the run.
CHOSEN_CLOCKS = frozenset(
    {"clocks set by the user", "display clock", "kept in step with other GPUs"}
)


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
        busy_ratio: NVML: share of time in which any kernel ran, mean over the decode steps; None
            where it was not read, or the steps did not last long enough.
        controller_ratio: NVML: share of time in which memory was read or written at all, likewise.
        busy_reason: Why both are None though they were read; empty otherwise.
    """

    bytes_per_s: float
    flops_per_s: float
    bytes_ratio: float | None
    flops_ratio: float | None
    busy_ratio: float | None
    controller_ratio: float | None
    busy_reason: str = ""


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
    samples = _of_decode_alone(trace)
    is_read = any(sample.gpu_busy_ratio is not None for sample in trace.telemetry)
    return Achieved(
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        bytes_ratio=None if roofs is None else bytes_per_s / roofs.bytes_per_s,
        flops_ratio=None if roofs is None else flops_per_s / roofs.flops_per_s,
        busy_ratio=_mean(sample.gpu_busy_ratio for sample in samples),
        controller_ratio=_mean(sample.memory_controller_busy_ratio for sample in samples),
        busy_reason=_too_short(trace.events) if is_read and not samples else "",
    )


def notes_of(trace: RunTrace) -> tuple[str, ...]:
    """Return a sentence for each thing that makes the run another than it seems."""
    notes = (
        _disturbed_note(trace),
        _decode_note(trace),
        _throttle_note(trace.telemetry),
        _company_note(trace.telemetry),
        *dict.fromkeys(request.text_note for request in trace.requests),
    )
    return tuple(note for note in notes if note)


def _disturbed_note(trace: RunTrace) -> str:
    count = disturbance(trace.events)
    if count.steps:
        return f"{count.sentence}." if count.disturbed else ""
    return _crowded_note(trace)


def _crowded_note(trace: RunTrace) -> str:
    """Return what the processors' load says, where the steps themselves do not tell."""
    if trace.info.device.kind != "cpu" or not trace.events:
        return ""
    shares = [
        (sample.cpu_busy_ratio, sample.process_cpu_ratio)
        for sample in _within(trace.telemetry, trace.events)
        if sample.cpu_busy_ratio is not None and sample.process_cpu_ratio is not None
    ]
    full = [own for busy, own in shares if busy >= FULL_RATIO and busy - own >= OTHERS_RATIO]
    if 2 * len(full) <= len(shares):
        return ""
    return (
        f"All cores were busy in {len(full)} of {len(shares)} samples and the engine had "
        f"{median(full):.0%} of them, so other programs disturbed this run."
    )


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


def _plain_decodes(events: Iterable[StepEvent]) -> Iterator[StepEvent]:
    plain = (one for one in events if one.phase is Phase.DECODE and not one.observed | one.cold)
    return iter(undisturbed(plain))


def _work(shape: ModelShape, event: StepEvent) -> tuple[int, int] | None:
    """Return the bytes and FLOPs that a step had to move and compute; None for unknown shapes."""
    try:
        cost = step_cost(shape, event.rows)
    except InputError:
        return None
    return cost.bytes_moved, cost.flops


def _of_decode_alone(trace: RunTrace) -> list[TelemetrySample]:
    """Return the samples whose busy times are of decode steps and of nothing before them."""
    spans = [
        (start_s + AVERAGED_S, end_s)
        for start_s, end_s in phase_spans(trace.events, Phase.DECODE, LONGEST_GAP_S)
        if end_s - start_s >= LEAST_DECODE_S
    ]
    return [
        sample
        for sample in trace.telemetry
        if any(start_s <= sample.at_s <= end_s for start_s, end_s in spans)
    ]


def _too_short(events: Iterable[StepEvent]) -> str:
    spans = phase_spans(events, Phase.DECODE, LONGEST_GAP_S)
    longest_s = max((end_s - start_s for start_s, end_s in spans), default=0.0)
    return (
        f"too short: decode steps followed each other for {longest_s:.2g} s; the driver's busy "
        f"time is of up to {AVERAGED_S:g} s before it is read, so {LEAST_DECODE_S:g} s are needed"
    )


def _within(
    samples: Iterable[TelemetrySample], events: Sequence[StepEvent]
) -> list[TelemetrySample]:
    start_s, end_s = events[0].started_s, events[-1].started_s + events[-1].duration_s
    return [sample for sample in samples if start_s <= sample.at_s <= end_s]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
