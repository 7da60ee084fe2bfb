"""Charts with a name, as they are shown, exported and put into reports. No torch, no page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import vl_convert

from inference.comparisons import Subject
from inference.records import Ceilings, RunTrace
from visuals import compare, compare_rows, kv_cache, latency, utilization
from visuals.theme import Chart

WIDTH = 900
PNG_SCALE = 2.0
CONFIG: dict[str, object] = {
    "background": "white",
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 13, "titleFontSize": 14},
    "legend": {"labelFontSize": 13, "titleFontSize": 13},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedChart:
    """A chart with its rows, made when it is wanted.

    Attributes:
        name: For file names and tests.
        title: For readers.
        build: Makes it.
        caption: What must be known to read it; often empty.
    """

    name: str
    title: str
    build: Callable[[], Chart]
    caption: str = ""


def run_charts(trace: RunTrace) -> tuple[NamedChart, ...]:
    """Return the charts of one run."""
    charts = [
        NamedChart(
            name="prefill-laps",
            title="Prefill, lap by lap",
            build=partial(latency.prefill_laps, trace),
        ),
        NamedChart(
            name="decode-laps",
            title="Decode, step by step",
            build=partial(latency.decode_laps, trace),
            caption=latency.caption(trace.events),
        ),
        NamedChart(
            name="cache-growth",
            title="K/V cache",
            build=partial(kv_cache.cache_growth, trace),
            caption=kv_cache.caption(trace.events, trace.info.shape),
        ),
        NamedChart(
            name="tokens-per-layer",
            title="Tokens stored in each layer",
            build=partial(kv_cache.tokens_per_layer, trace),
        ),
    ]
    if trace.telemetry:
        busy = partial(utilization.utilization, trace)
        charts.append(NamedChart(name="utilisation", title="Utilisation", build=busy))
    if any(sample.power_w is not None for sample in trace.telemetry):
        watts = partial(utilization.power, trace)
        charts.append(NamedChart(name="power", title="Power", build=watts))
    return tuple(charts)


def comparison_charts(subjects: Sequence[Subject]) -> tuple[NamedChart, ...]:
    """Return the charts of runs side by side."""
    ceilings = shared_ceilings(subjects)
    is_counted = any(compare_rows.roofline_rows(one) for one in subjects)
    roofline = NamedChart(
        name="roofline-points",
        title="Roofline",
        build=partial(compare.roofline_points, subjects, ceilings),
        caption="Squares: prefill. Circles: decode. FLOPs and bytes counted, laps measured.",
    )
    return (
        NamedChart(
            name="latency-by-step",
            title="Decode latency by step",
            build=partial(compare.latency_by_step, subjects),
        ),
        NamedChart(
            name="latency-by-context",
            title="Decode latency by context length",
            build=partial(compare.latency_by_context, subjects),
        ),
        NamedChart(
            name="ttft-by-prompt",
            title="Time to first token by prompt length",
            build=partial(compare.ttft_by_prompt, subjects),
            caption=compare_rows.fit_caption(subjects),
        ),
        NamedChart(
            name="kv-growth",
            title="K/V cache by step",
            build=partial(compare.kv_growth, subjects),
            caption="Measured on the cache's own tensors; of a batch, all rows together.",
        ),
        *((roofline,) if is_counted else ()),
    )


def shared_ceilings(subjects: Sequence[Subject]) -> Ceilings | None:
    """Return the roofs measured where the runs were made; None where the runs do not share any."""
    infos = [sample.trace.info for subject in subjects for sample in subject.samples]
    is_shared = len({(info.device.name, info.device.dtype) for info in infos}) == 1
    measured = [info.ceilings for info in infos if info.ceilings is not None]
    return measured[-1] if is_shared and measured else None


def styled_spec(chart: Chart) -> dict[str, object]:
    """Return the Vega-Lite spec with its rows, on white, as wide as its place."""
    spec = chart.to_dict()
    return {**spec, "config": {**spec.get("config", {}), **CONFIG}}


def chart_spec(chart: Chart) -> dict[str, object]:
    """Return the Vega-Lite spec with its rows, on white, at a width of its own."""
    return {**styled_spec(chart), "width": WIDTH}


def spec_json(chart: Chart) -> str:
    """Return the spec as a file."""
    return json.dumps(chart_spec(chart), indent=1)


def png(chart: Chart) -> bytes:
    """Return the chart as a PNG picture."""
    return vl_convert.vegalite_to_png(chart_spec(chart), scale=PNG_SCALE)


def svg(chart: Chart) -> str:
    """Return the chart as an SVG picture."""
    return vl_convert.vegalite_to_svg(chart_spec(chart))
