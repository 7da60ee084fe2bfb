"""What a device did during a run: its counters over time, and the host beside it.

Sentences and tables come with the charts. No page, no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt

from inference.figures.device import Achieved, achieved, host_lead
from inference.figures.energy import PhaseEnergy, energy_by_phase
from inference.records.options import CacheKind
from inference.records.run import RunTrace
from inference.records.steps import Phase
from inference.records.telemetry import TelemetrySample
from visuals.charts.axes import picked
from visuals.charts.theme import DECODE, GPU, HOST, MEMORY, Chart, Row, finished, whole_numbers
from visuals.charts.units import amount, mebibytes, milliseconds, percent, scaled, significant

STEP_TIME, LAUNCHED = "step time", "launched by the host"
_LAUNCH_NAMES = [STEP_TIME, LAUNCHED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counters of one unit that share a chart.

    Attributes:
        key: Its name for tests and data.
        title: The axis's title with the unit.
        lines: Name on the page, colour, and the value of a sample.
    """

    key: str
    title: str
    lines: tuple[tuple[str, str, Callable[[TelemetrySample], float | None]], ...]


COUNTERS = (
    Counters(
        key="busy",
        title="busy, %",
        lines=(
            ("GPU, any kernel", GPU, lambda s: percent(s.gpu_busy_ratio)),
            ("memory controller", MEMORY, lambda s: percent(s.memory_controller_busy_ratio)),
        ),
    ),
    Counters(
        key="clocks",
        title="clock, GHz",
        lines=(
            ("SM", GPU, lambda s: _in(s.sm_clock_hz, 1e9)),
            ("memory", MEMORY, lambda s: _in(s.memory_clock_hz, 1e9)),
        ),
    ),
    Counters(
        key="temperature",
        title="temperature, \u00b0C",
        lines=(("GPU", GPU, lambda s: s.temperature_c),),
    ),
    Counters(
        key="pcie",
        title="PCIe, MB/s",
        lines=(
            ("sent", GPU, lambda s: _in(s.pcie_tx_bytes_per_s, 1e6)),
            ("received", MEMORY, lambda s: _in(s.pcie_rx_bytes_per_s, 1e6)),
        ),
    ),
)

BUSY_EXPLANATION = (
    "Busy is the share of time in which any kernel ran at all, one small kernel on one of many "
    "processors included; the memory controller's is the share in which memory was read or written "
    "at all. Neither is a share of what the device can do. The achieved rates are: bytes and "
    "operations that the steps had to move and compute, counted, over their measured step times."
)


def counters_over_time(counters: Counters, samples: Sequence[TelemetrySample]) -> Chart:
    """Return a line for each counter of one unit, over the run's time."""
    names = [name for name, _, _ in counters.lines]
    rows = counter_rows(counters, samples)
    chart = (
        alt.Chart(alt.NamedData(counters.key))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("at_s:Q", title="time, s", axis=alt.Axis(grid=False, tickCount=5)),
            y=alt.Y(
                "value:Q", title=counters.title, scale=alt.Scale(zero=counters.key != "temperature")
            ),
            color=alt.Color(
                "counter:N",
                title=None,
                legend=alt.Legend(orient="bottom"),
                scale=alt.Scale(domain=names, range=[colour for _, colour, _ in counters.lines]),
            ),
            tooltip=[
                alt.Tooltip("counter:N", title="counter"),
                alt.Tooltip("at_s:Q", title="s"),
                alt.Tooltip("value:Q", title=counters.title),
            ],
        )
    )
    description = f"Line chart: {counters.title} over seconds."
    return finished(chart, {counters.key: rows}, description=description)


def counter_rows(counters: Counters, samples: Sequence[TelemetrySample]) -> list[Row]:
    """Return a row for each reading that was given, thinned to what a chart can show."""
    rows: list[Row] = []
    for k, sample in enumerate(samples):
        for name, _, value in counters.lines:
            read = value(sample)
            if read is not None:
                rows.append(
                    {
                        "k": k,
                        "at_s": round(sample.at_s, 3),
                        "counter": name,
                        "value": round(read, 3),
                    }
                )
    return picked(rows)


def launches(trace: RunTrace) -> Chart:
    """Return each decode step's step time, and the host time until its work was launched."""
    chart = (
        alt.Chart(alt.NamedData("launches"))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="step", axis=whole_numbers()),
            y=alt.Y("ms:Q", title="time, ms", axis=alt.Axis(tickCount=4)),
            color=alt.Color(
                "what:N",
                title=None,
                legend=alt.Legend(orient="bottom"),
                scale=alt.Scale(domain=_LAUNCH_NAMES, range=[DECODE, HOST]),
            ),
            tooltip=[
                alt.Tooltip("step:Q", title="step"),
                alt.Tooltip("what:N", title="what"),
                alt.Tooltip("ms:Q", title="ms"),
            ],
        )
    )
    description = "Two lines: milliseconds of each decode step, and of its launch by the host."
    return finished(chart, {"launches": launch_rows(trace)}, description=description)


def launch_rows(trace: RunTrace) -> list[Row]:
    """Return two rows for each decode step whose host time is known."""
    rows: list[Row] = []
    for event in trace.events:
        if event.phase is not Phase.DECODE or event.host_s is None:
            continue
        for name, seconds in zip(_LAUNCH_NAMES, (event.duration_s, event.host_s), strict=True):
            rows.append(
                {"k": event.index, "step": event.index, "what": name, "ms": milliseconds(seconds)}
            )
    return picked(rows)


def launch_sentence(trace: RunTrace) -> str:
    """Return whether the host was ahead of the device, at the median of the decode steps."""
    lead = host_lead(trace.events)
    if lead is None:
        if trace.info.device.kind == "cpu":
            return (
                "On a CPU an operation has finished when its call returns, so the host never runs "
                "ahead."
            )
        return "No decode step has been timed yet."
    host, timing = (
        amount(milliseconds(lead.host_s), "ms"),
        amount(milliseconds(lead.step_time_s), "ms"),
    )
    launched = f"The host had launched a decode step after {host} of its step time of {timing}"
    if lead.is_behind:
        return (
            f"{launched}: it is **behind**. The device waits for the next operation, so the "
            "step is bound by launches; a recorded step (graph) removes them."
        )
    return f"{launched}: it is **ahead**. The device always has work and sets the pace."


def achieved_rows(trace: RunTrace) -> list[Row]:
    """Return how busy the device looked beside what it achieved; empty before the first step."""
    rates = achieved(trace)
    if rates is None:
        return []
    return [
        _rate_row("memory traffic", scaled(rates.bytes_per_s, "B/s"), rates.bytes_ratio),
        _rate_row("arithmetic", scaled(rates.flops_per_s, "FLOP/s"), rates.flops_ratio),
        *_busy_rows(rates),
    ]


def energy_rows(trace: RunTrace) -> list[Row]:
    """Return the energy of prefill and decode, or why it is unknown."""
    return [_energy_row(one) for one in energy_by_phase(trace)]


def cache_sentence(trace: RunTrace) -> str:
    """Return how much of a static cache's room is used; empty for other caches."""
    if trace.info.cache is not CacheKind.STATIC or not trace.events:
        return ""
    cache = trace.events[-1].cache
    used, room = mebibytes(cache.used_bytes), mebibytes(cache.allocated_bytes)
    share = cache.used_bytes / cache.allocated_bytes if cache.allocated_bytes else None
    return (
        f"The static cache holds {amount(used, 'MiB')} of the {amount(room, 'MiB')} allocated for "
        f"it ({amount(percent(share), '%')}); attention reads all of it in a recorded step."
    )


def _rate_row(what: str, value: str, ratio: float | None) -> Row:
    share = "roof not measured" if ratio is None else amount(percent(ratio), "% of the roof")
    return {"decode steps": f"{what}, achieved", "reading": value, "of what it can do": share}


def _busy_rows(rates: Achieved) -> list[Row]:
    ratios = {
        "GPU busy, any kernel": rates.busy_ratio,
        "memory controller busy": rates.controller_ratio,
    }
    return [
        {
            "decode steps": f"{name}, NVML",
            "reading": rates.busy_reason or amount(percent(ratio), "% of the time"),
            "of what it can do": "not a share of it",
        }
        for name, ratio in ratios.items()
    ]


def _energy_row(one: PhaseEnergy) -> Row:
    per_token = one.joules_per_token
    sure = "" if one.uncertain_ratio is None else f"\u00b1 {percent(one.uncertain_ratio)} %"
    moves = "\u2013" if one.interval_s is None else f"every {significant(one.interval_s, 2)} s"
    return {
        "phase": one.phase.value,
        "tokens": one.tokens,
        "energy per token": amount(per_token, "J") if per_token is not None else one.reason,
        "uncertainty": sure,
        "counter resolution": moves,
    }


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
