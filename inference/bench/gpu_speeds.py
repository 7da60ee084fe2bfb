"""How fast a device decodes in each way, side by side, and what watching it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import fsum

import torch

from inference.bench.gpu_setup import Bench, decoding
from inference.bench.rounds import rates, spread_of
from inference.bench.subjects import generate_tokens
from inference.engine.loop import GenerationOptions
from inference.engine.memory_limit import MemoryLimit
from inference.figures.device import host_lead
from inference.figures.energy import PhaseEnergy, energy_by_phase
from inference.figures.latency import batch_tokens_per_s
from inference.models.devices import gpu_id
from inference.process.telemetry import Sources
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.steps import Phase

SAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One way to decode the same prompt.

    Attributes:
        name: What ran.
        tokens_per_s: New tokens over the whole time, prefill included; the median of the repeats.
        decode_tokens_per_s: New tokens over decode step times; None where there are none.
        host_ratio: Share of a decode step until the host has launched all of it; None likewise.
        joules_per_token: Of the decode steps; None where the GPU has no counter of energy.
        note: Why it was not measured; empty when it was.
    """

    name: str
    tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    host_ratio: float | None = None
    joules_per_token: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpeed:
    """Decode steps of one number of rows, and the run they were measured in."""

    rows: int
    tokens_per_s: float | None
    trace: RunTrace


def speeds(bench: Bench, modes: tuple[DecodeMode, ...]) -> Iterator[tuple[Speed, RunTrace | None]]:
    """Yield each way to decode one row, the library's own ``generate`` first, with its last run."""
    yield library_speed(bench), None
    dynamic = GenerationOptions()
    yield _speed(bench, "eager, growing cache", dynamic)
    for mode in modes:
        yield _speed(bench, f"{mode}, static cache", decoding(mode))


def library_speed(bench: Bench) -> Speed:
    """Return how fast the library's own ``generate`` makes the same number of tokens."""
    sizes = bench.sizes
    request = bench.requests(1, sizes.new_tokens)[0]
    ids = torch.tensor([request.prompt_ids], device=bench.device)
    seconds: list[float] = []
    for _ in range(sizes.repeats + 1):
        bench.clock.start_timing()
        generate_tokens(bench.loaded.model, ids, sizes.new_tokens).cpu()
        seconds.append(bench.clock.end_timing())
    rate = rates(seconds[1:], sizes.new_tokens).median
    return Speed(name="the library's generate()", tokens_per_s=rate)


def _speed(bench: Bench, name: str, options: GenerationOptions) -> tuple[Speed, RunTrace | None]:
    sizes = bench.sizes
    requests = bench.requests(1, sizes.new_tokens)
    traces = [bench.trace(requests, options) for _ in range(sizes.repeats + 1)]
    last = traces[-1]
    if last.info.decode_note:
        return Speed(name=name, note=last.info.decode_note), None
    if last.message:
        return Speed(name=name, note=last.message), None
    lead = host_lead(last.events)
    return (
        Speed(
            name=name,
            tokens_per_s=spread_of([_whole_rate(trace) for trace in traces[1:]]).median,
            decode_tokens_per_s=batch_tokens_per_s(last),
            host_ratio=lead.ratio if lead is not None else None,
            joules_per_token=decode_energy(last).joules_per_token,
        ),
        last,
    )


def _whole_rate(trace: RunTrace) -> float:
    """Return new tokens per second from the first step's start to the last step's end.

    The time between steps is in it: describing each step, recording it, and telemetry.
    """
    last = trace.events[-1]
    seconds = last.started_s + last.duration_s - trace.events[0].started_s
    tokens = sum(row.token_id is not None for event in trace.events for row in event.rows)
    return tokens / seconds if seconds > 0 else 0.0


def batch_speeds(
    bench: Bench, options: GenerationOptions, has_time: Callable[[], bool]
) -> Iterator[BatchSpeed]:
    """Yield a recorded run for each number of rows while there is time."""
    sizes = bench.sizes
    for rows in sizes.batches:
        if not has_time():
            return
        trace = bench.trace(bench.requests(rows, sizes.batch_tokens), options)
        if trace.message:
            return  # larger ones would not fit either; the run says why
        yield BatchSpeed(rows=rows, tokens_per_s=batch_tokens_per_s(trace), trace=trace)


def decode_energy(trace: RunTrace) -> PhaseEnergy:
    """Return the energy of a run's decode steps."""
    return next(one for one in energy_by_phase(trace) if one.phase is Phase.DECODE)


def reading_cost_s(bench: Bench) -> tuple[float, dict[str, str]]:
    """Return the mean time of one telemetry sample, and why readings are missing, by name."""
    sources = Sources(gpu_id(bench.device), MemoryLimit())
    times: list[float] = []
    try:
        for _ in range(SAMPLES):
            began_s = bench.clock.now_s()
            sources.read()
            times.append(bench.clock.now_s() - began_s)
        return fsum(times) / len(times), sources.reasons()
    finally:
        sources.close()
