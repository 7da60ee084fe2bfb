"""How fast a device decodes in each way, side by side, and what watching it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, fsum
from statistics import median

from inference.bench.gpu_plan import DECODE_S, LEAST_DECODE_S, Pace
from inference.bench.gpu_setup import Bench
from inference.bench.gpu_sizes import Sizes
from inference.bench.rounds import rates, spread_of
from inference.engine.loop import GenerationOptions
from inference.figures.device import achieved, host_lead
from inference.figures.energy import PhaseEnergy, energy_by_phase
from inference.figures.latency import batch_tokens_per_s
from inference.models.devices import gpu_ids
from inference.models.memory_limit import MemoryLimit
from inference.process.telemetry import Sources
from inference.records.errors import BackendError
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.steps import Phase

SAMPLES = 20
# The first run of a model is cold, so one of a few steps goes before the one that is looked at.
COLD_TOKENS = 4
PACE_TOKENS = 16
# Source: our choice. Decode of a longer context takes longer, and each step is recorded.
LONG_RUN_MARGIN = 1.5

HasTime = Callable[[float], bool]  # whether there is time for something that takes this long


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One way to decode the same prompt.

    Attributes:
        name: What ran.
        tokens_per_s: New tokens over the whole time, prefill included; the median of the repeats.
        decode_tokens_per_s: New tokens over decode step times; None where there are none.
        host_ratio: Share of a decode step until the host has launched all of it; None likewise.
        steady_tokens: New tokens of the run that the figures below are of; None for no run.
        busy_ratio: NVML's busy time over its decode steps; None where it is not known.
        joules_per_token: Of its decode steps; None likewise.
        unknown: Why busy time or energy is not known; empty where both are.
        note: Why it was not measured; empty when it was.
    """

    name: str
    tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    host_ratio: float | None = None
    steady_tokens: int | None = None
    busy_ratio: float | None = None
    joules_per_token: float | None = None
    unknown: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpeed:
    """Decode steps of one number of rows.

    Attributes:
        tokens_per_s: Of all rows together; None where it was not measured.
        trace: The run; None without one.
        note: Why it was not measured; empty when it was.
    """

    rows: int
    tokens_per_s: float | None = None
    trace: RunTrace | None = None
    note: str = ""


def pace_of(bench: Bench, load_s: float) -> Pace:
    """Return what a prefill and an eager decode step take, once the device is warm.

    Raises:
        BackendError: A run did not get to its end.
    """
    for tokens in (COLD_TOKENS, PACE_TOKENS):
        trace = bench.trace(bench.requests(1, tokens), GenerationOptions())
        if trace.message:
            raise BackendError(trace.message)
    starts = [event.started_s for event in trace.events if event.phase is Phase.DECODE]
    prefill_s = fsum(one.duration_s for one in trace.events if one.phase is Phase.PREFILL)
    return Pace(
        load_s=load_s,
        prefill_s=prefill_s,
        step_s=median(after - before for before, after in pairwise(starts)),
    )


def library_speed(bench: Bench, sizes: Sizes) -> Speed:
    """Return how fast the library's own ``generate`` makes the same number of tokens."""
    bench.generate_s(sizes.warm_tokens)
    seconds = [bench.generate_s(sizes.new_tokens) for _ in range(sizes.repeats)]
    rate = rates(seconds, sizes.new_tokens).median
    return Speed(name="the library's generate()", tokens_per_s=rate)


def speed_of(
    bench: Bench, sizes: Sizes, name: str, options: GenerationOptions, has_time: HasTime
) -> tuple[Speed, tuple[RunTrace, ...]]:
    """Return one way to decode one row, and the runs to keep of it."""
    requests = bench.requests(1, sizes.new_tokens)
    # A recorded step is for one size of cache, so its warm run has the length of the others.
    is_eager = options.decode is DecodeMode.EAGER
    warm = bench.trace(bench.requests(1, sizes.warm_tokens) if is_eager else requests, options)
    if warm.info.decode_note or warm.message:
        return Speed(name=name, note=warm.info.decode_note or warm.message), ()
    traces = [bench.trace(requests, options) for _ in range(sizes.repeats)]
    last = traces[-1]
    if last.message:
        return Speed(name=name, note=last.message), ()
    longer = _longer(bench, last, options, has_time) if sizes.is_timed else None
    steady = longer or last
    lead, energy, rates_of = host_lead(last.events), decode_energy(steady), achieved(steady)
    unknown = (
        f"energy per token: {energy.reason}" if energy.reason else "",
        f"busy time: {rates_of.busy_reason}" if rates_of is not None else "",
    )
    speed = Speed(
        name=name,
        tokens_per_s=spread_of([_whole_rate(trace) for trace in traces]).median,
        decode_tokens_per_s=batch_tokens_per_s(last),
        host_ratio=lead.ratio if lead is not None else None,
        steady_tokens=_tokens(steady),
        busy_ratio=rates_of.busy_ratio if rates_of is not None else None,
        joules_per_token=energy.joules_per_token,
        unknown=tuple(one for one in unknown if not one.endswith(": ") and one),
    )
    return speed, (last,) if longer is None else (last, longer)


def _longer(
    bench: Bench, last: RunTrace, options: GenerationOptions, has_time: HasTime
) -> RunTrace | None:
    """Return a run whose decode lasts long enough for energy and busy time; None for no need.

    None too where there is no time or no room in the model's context for one.
    """
    steps = [one.duration_s for one in last.events if one.phase is Phase.DECODE]
    if not steps or fsum(steps) >= LEAST_DECODE_S:
        return None
    wanted = ceil(DECODE_S / median(steps))
    room = bench.room_tokens
    tokens = wanted if room is None else min(wanted, room)
    if tokens <= len(steps) or not has_time(LONG_RUN_MARGIN * tokens / _whole_rate(last)):
        return None
    longer = bench.trace(bench.requests(1, tokens), options)
    return None if longer.message or longer.info.decode_note else longer


def _whole_rate(trace: RunTrace) -> float:
    """Return new tokens per second from the first step's start to the last step's end.

    The time between steps is in it: describing each step, recording it, and telemetry.
    """
    last = trace.events[-1]
    seconds = last.started_s + last.duration_s - trace.events[0].started_s
    return _tokens(trace) / seconds if seconds > 0 else 0.0


def _tokens(trace: RunTrace) -> int:
    return sum(row.token_id is not None for event in trace.events for row in event.rows)


def batch_speeds(
    bench: Bench, sizes: Sizes, options: GenerationOptions, has_time: Callable[[int], bool]
) -> Iterator[BatchSpeed]:
    """Yield each number of rows with its run, or with the reason why there is none.

    Args:
        bench: The model.
        sizes: Which rows, and how many tokens.
        options: How steps are launched.
        has_time: Told the rows; whether there is time for them.
    """
    for rows in sizes.batches:
        if not has_time(rows):
            yield BatchSpeed(rows=rows, note="left out for lack of time, as are larger ones")
            return
        if options.decode is DecodeMode.EAGER:
            # A library may load kernels at the first decode step of a new shape.
            bench.trace(bench.requests(rows, COLD_TOKENS), options)
        trace = bench.trace(bench.requests(rows, sizes.batch_tokens), options)
        reason = trace.message or trace.info.decode_note
        if reason:
            yield BatchSpeed(rows=rows, note=f"{reason.rstrip('.')}; larger ones were left out")
            return
        yield BatchSpeed(rows=rows, tokens_per_s=batch_tokens_per_s(trace), trace=trace)


def decode_energy(trace: RunTrace) -> PhaseEnergy:
    """Return the energy of a run's decode steps."""
    return next(one for one in energy_by_phase(trace) if one.phase is Phase.DECODE)


def reading_cost_s(bench: Bench) -> tuple[float, dict[str, str]]:
    """Return the mean time of one telemetry sample, and why readings are missing, by name."""
    sources = Sources(gpu_ids([bench.device]), MemoryLimit())
    times: list[float] = []
    try:
        for _ in range(SAMPLES):
            began_s = bench.clock.now_s()
            sources.read()
            times.append(bench.clock.now_s() - began_s)
        return fsum(times) / len(times), sources.reasons()
    finally:
        sources.close()
