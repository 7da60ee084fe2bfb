"""How busy the machine was while the run went, in percent and in watts over host time.

A reading that this machine does not give is left out, with the reason. Where readings stopped for a
while the lines do too: each stretch without a gap is a line of its own. No torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from inference.figures.device import notes_of
from inference.records.run import RunTrace
from inference.records.telemetry import TelemetrySample
from visuals.charts.axes import axis_end, nice_end, picked
from visuals.charts.theme import GPU, HOST, HOST_LIGHT, MEMORY, Chart, Row, finished
from visuals.charts.units import DASH, amount, gibibytes, percent, scaled

# Name on the page, colour, stroke width; the two greys differ in width and shade.
SERIES = (
    ("CPU, all cores", HOST_LIGHT, 4.5),
    ("CPU, engine", HOST, 2),
    ("memory", MEMORY, 2.5),
    ("GPU busy", GPU, 2.5),
)
# Source: our own choice. Readings come several times a second.
GAP_S = 2.5
OF_GPU = frozenset(
    {
        *("gpu_busy_ratio", "power_w", "memory_controller_busy_ratio", "energy_j", "sm_clock_hz"),
        *("memory_clock_hz", "temperature_c", "throttle_reasons"),
        *("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "other_programs"),
    }
)
_NAMES: list[str | alt.FieldName] = [name for name, _, _ in SERIES]

EXPLANATION = {
    "what": "How busy the machine was during the run.",
    "read": "GPU busy is the share of time in which any kernel ran: one small kernel reads 100 %, "
    "so it is not a share of the device's speed. The engine's share is its part of all cores' "
    "time.",
    "how": "Measured several times per second on a thread of its own: NVML for the GPU, psutil for "
    "CPU and memory.",
    "formula": "CPU = busy time of all cores / (cores \u00d7 time between two readings)",
    "source": "NVIDIA Management Library, nvmlUtilization_t; psutil, cpu_times.",
}


def utilization(trace: RunTrace | None = None) -> Chart:
    """Return one line for each reading, in percent over time."""
    base = alt.Chart(alt.NamedData("utilization"))
    lines = (
        base.transform_fold(_NAMES, as_=["reading", "pct"])
        .mark_line(strokeJoin="round", interpolate="linear")
        .encode(
            x=_time_axis("at_s:Q"),
            y=alt.Y(
                "pct:Q",
                title="%",
                axis=alt.Axis(values=[0, 50, 100]),
                scale=alt.Scale(domain=[0, 100], clamp=True),
            ),
            detail="stretch:N",
            color=alt.Color(
                "reading:O",
                title=None,
                legend=alt.Legend(orient="bottom", columns=2),
                scale=alt.Scale(domain=_NAMES, range=[colour for _, colour, _ in SERIES]),
            ),
            strokeWidth=alt.StrokeWidth(
                "reading:O",
                title=None,
                scale=alt.Scale(domain=_NAMES, range=[width for _, _, width in SERIES]),
            ),
        )
    )
    ends = alt.Chart(alt.NamedData("utilization_extent")).mark_point(opacity=0)
    chart = alt.layer(lines, ends.encode(x=_time_axis("x:Q")))
    datasets = None
    if trace is not None:
        datasets = {
            "utilization": picked(reading_rows(trace.telemetry)),
            "utilization_extent": time_extent(trace.telemetry),
        }
    return finished(chart, datasets, description="Line chart: percent busy over seconds.")


def power(trace: RunTrace | None = None) -> Chart:
    """Return the device's power draw over time."""
    base = alt.Chart(alt.NamedData("power"))
    line = base.mark_line(color=GPU, strokeWidth=2.5).encode(
        x=_time_axis("at_s:Q"),
        y=alt.Y("w:Q", title="power, W", axis=alt.Axis(tickCount=3)),
        detail="stretch:N",
        tooltip=[alt.Tooltip("at_s:Q", title="s"), alt.Tooltip("w:Q", title="W")],
    )
    ends = alt.Chart(alt.NamedData("power_extent")).mark_point(opacity=0)
    chart = alt.layer(line, ends.encode(x=_time_axis("x:Q"), y="y:Q"))
    datasets = None
    if trace is not None:
        datasets = {
            "power": picked(power_rows(trace.telemetry)),
            "power_extent": power_extent(trace.telemetry),
        }
    return finished(chart, datasets, description="Line chart: watts over seconds.")


def reading_rows(samples: Sequence[TelemetrySample], *, first: int = 0) -> list[Row]:
    """Return one row for each sample from ``first`` on; a reading that is not there is None."""
    return [
        {**_reading_row(k, samples[k]), "stretch": stretch}
        for k, stretch in enumerate(_stretches(samples))
        if k >= first
    ]


def power_rows(samples: Sequence[TelemetrySample], *, first: int = 0) -> list[Row]:
    """Return one row for each sample from ``first`` on that has a reading of power."""
    return [
        {
            "k": k,
            "at_s": round(samples[k].at_s, 3),
            "w": round(watts, 1),
            "stretch": stretch,
        }
        for k, stretch in enumerate(_stretches(samples))
        if k >= first and (watts := samples[k].power_w) is not None
    ]


def _stretches(samples: Sequence[TelemetrySample]) -> Iterator[int]:
    """Yield for each sample how many gaps lie before it."""
    gaps = 0
    for k, sample in enumerate(samples):
        gaps += k > 0 and sample.at_s - samples[k - 1].at_s > GAP_S
        yield gaps


def time_extent(samples: Sequence[TelemetrySample]) -> list[Row]:
    """Return one row that holds the far end of the axis of time."""
    return [{"x": axis_end(samples[-1].at_s if samples else 0.0, least=10)}]


def power_extent(samples: Sequence[TelemetrySample]) -> list[Row]:
    """Return one row that holds the far ends of both axes of the power chart."""
    largest = max((sample.power_w or 0.0 for sample in samples), default=0.0)
    return [{**time_extent(samples)[0], "y": nice_end(largest)}]


def newest_readings(samples: Sequence[TelemetrySample]) -> list[Row]:
    """Return the newest value of each reading the machine gives, with colour and width."""
    if not samples:
        return []
    newest = samples[-1]
    row = _reading_row(0, newest)
    readings: list[Row] = [
        {"name": name, "colour": colour, "width": width, "text": amount(_float(row[name]), "%")}
        for name, colour, width in SERIES
        if row[name] is not None
    ]
    for reading in readings:
        if reading["name"] == "memory":
            reading["text"] = _memory(newest)
    if newest.power_w is not None:
        watts = amount(newest.power_w, "W")
        readings.append({"name": "power", "colour": GPU, "width": 2.5, "text": watts})
    return readings + _more_of_gpu(newest)


def _more_of_gpu(sample: TelemetrySample) -> list[Row]:
    """Return the GPU's other counters as text; those it does not give are left out."""
    held = sample.throttle_reasons
    texts = {
        "memory controller": amount(percent(sample.memory_controller_busy_ratio), "%"),
        "GPU clock": scaled(sample.sm_clock_hz, "Hz"),
        "GPU temperature": amount(sample.temperature_c, "\u00b0C"),
        "clocks limited by": ", ".join(held) if held else DASH,
    }
    return [
        {"name": name, "colour": GPU, "width": 2.5, "text": text}
        for name, text in texts.items()
        if text != DASH
    ]


def remarks(trace: RunTrace) -> list[str]:
    """Return what disturbed the run or makes it another than asked for, and what was not read."""
    return [*notes_of(trace), *missing(trace)]


def missing(trace: RunTrace) -> list[str]:
    """Return one sentence for each reason why readings are not available, the reason first."""
    names = {
        "gpu_busy_ratio": "GPU busy",
        "memory_used_bytes": "memory",
        "memory_total_bytes": "total memory",
        "power_w": "power",
        "cpu_busy_ratio": "CPU",
        "process_cpu_ratio": "the engine's CPU share",
        "process_memory_bytes": "the engine's memory",
        "memory_controller_busy_ratio": "memory controller",
        "energy_j": "energy",
        "sm_clock_hz": "GPU clock",
        "memory_clock_hz": "memory clock",
        "temperature_c": "temperature",
        "throttle_reasons": "throttling",
        "pcie_tx_bytes_per_s": "PCIe sent",
        "pcie_rx_bytes_per_s": "PCIe received",
        "other_programs": "other programs on the GPU",
        "run_delay_s": "which steps other programs disturbed",
    }
    by_reason: dict[str, list[str]] = {}
    for entry in trace.unavailable:
        by_reason.setdefault(entry.reason.rstrip("."), []).append(entry.reading)
    sentences: list[str] = []
    for why, readings in by_reason.items():
        # Eleven names in a row would take more room than the chart has.
        is_no_gpu = set(readings) >= OF_GPU
        rest = [one for one in readings if not (is_no_gpu and one in OF_GPU)]
        shown = ["all readings of a GPU"] * is_no_gpu + [names.get(one, one) for one in rest]
        sentences.append(f"{why[:1].upper()}{why[1:]}, so not available: {', '.join(shown)}.")
    return sentences


def _time_axis(field: str) -> alt.X:
    """Return the axis of seconds since the run began; the unit stands at each label."""
    axis = alt.Axis(labelExpr="datum.label + ' s'", tickCount=5, grid=False)
    return alt.X(field, title=None, axis=axis, scale=alt.Scale(nice=False))


def _reading_row(k: int, sample: TelemetrySample) -> Row:
    """Return all percentages of one sample under the names they have on the page."""
    used, total = sample.memory_used_bytes, sample.memory_total_bytes
    memory_ratio = used / total if used is not None and total else None
    ratios = (
        sample.cpu_busy_ratio,
        sample.process_cpu_ratio,
        memory_ratio,
        sample.gpu_busy_ratio,
    )
    row: Row = {"k": k, "at_s": round(sample.at_s, 3)}
    for (name, _, _), ratio in zip(SERIES, ratios, strict=True):
        row[name] = percent(ratio)
    return row


def _memory(sample: TelemetrySample) -> str:
    """Return memory in use of the whole, in GiB."""
    used = amount(gibibytes(sample.memory_used_bytes), "GiB")
    return f"{used} of {amount(gibibytes(sample.memory_total_bytes), 'GiB')}"


def _float(cell: float | str | None) -> float | None:
    """Return a cell that holds a number or nothing."""
    return cell if isinstance(cell, (int, float)) else None
