"""Charts with a name, as they are shown, exported and put into reports. No torch, no page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import altair as alt
import vl_convert

from inference.records.attention import PackedAttention
from inference.records.costs import Ceilings
from inference.records.finite import finite
from inference.records.run import RunTrace
from inference.records.steps import Part
from inference.runs.comparisons import Subject
from visuals.charts import (
    attention_weights,
    compare,
    compare_rows,
    kv_cache,
    latency,
    next_token,
    roofline,
    roofline_rows,
    slots,
    utilization,
)
from visuals.charts.legends import with_present_legends
from visuals.charts.theme import Chart, with_rows_only
from visuals.charts.units import date_text

WIDTH, HEIGHT = 900, 420  # of a picture
RUN_HEIGHT = 260  # of one run's charts in a report
SQUARE_HEIGHT = 420  # of attention weights there
DRAWN_LAYERS = 4
PNG_SCALE = 2.0
MOST_SUBTITLES = 4
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
        caption: What is needed to read it; often empty.
    """

    name: str
    title: str
    build: Callable[[], Chart]
    caption: str = ""


def run_charts(trace: RunTrace) -> tuple[NamedChart, ...]:
    """Return the charts of one run: those of its panel that have something to show."""
    return (
        _of(
            trace,
            "decode-steps",
            "Decode, step by step",
            latency.decode_step_times,
            latency.caption(trace.events),
        ),
        _of(
            trace,
            "prefill-steps",
            "Prefill, step by step",
            latency.prefill_step_times,
        ),
        *_rooflines(trace),
        _of(
            trace,
            "cache-growth",
            "K/V cache",
            kv_cache.cache_growth,
            kv_cache.caption(trace.events, trace.info),
        ),
        _of(trace, "cache-layers", "K/V cache by layer", kv_cache.cache_layers),
        _of(trace, "tokens-per-layer", "Tokens stored in each layer", kv_cache.tokens_per_layer),
        *_choices(trace),
        *_attention(trace),
        *_machine(trace),
    )


def _of(
    trace: RunTrace, name: str, title: str, chart: Callable[[RunTrace], Chart], caption: str = ""
) -> NamedChart:
    """Return a chart of a run, higher than in its panel."""
    return NamedChart(
        name=name,
        title=title,
        build=lambda: chart(trace).properties(height=RUN_HEIGHT),
        caption=caption,
    )


def _rooflines(trace: RunTrace) -> Iterator[NamedChart]:
    """Yield the rooflines of whole steps, and of their parts where some were timed apart."""
    drawn = (
        (Part.STEP, "Roofline of whole steps", roofline.roofline_step),
        (Part.LINEAR, "Roofline of linear operations", roofline.roofline_linear),
        (Part.ATTENTION, "Roofline of attention", roofline.roofline_attention),
    )
    for part, title, chart in drawn:
        if roofline_rows.point_rows(trace.events, trace.info, part):
            caption = roofline_rows.caption(trace.events, trace.info, part)
            yield _of(trace, f"roofline-{part.value}", title, chart, caption)


def _choices(trace: RunTrace) -> Iterator[NamedChart]:
    """Yield how sure the model was, and of several requests the slots they had."""
    first = trace.requests[0].request_id
    if next_token.entropy_rows(trace.events, first):
        of_first = " of the first request" if len(trace.requests) > 1 else ""
        title = f"Entropy of the next token{of_first}"
        yield _of(trace, "entropy", title, next_token.entropy_by_step)
    if len(trace.requests) > 1:
        yield _of(trace, "slots", "Slots", slots.slot_timeline, slots.EXPLANATION["how"])


def _attention(trace: RunTrace) -> Iterator[NamedChart]:
    """Yield the attention weights that the run file keeps, of its first few layers or heads."""
    for number, one in enumerate(trace.attention[:DRAWN_LAYERS]):
        if any(layout.has_weights for layout in one.maps):
            yield NamedChart(
                name=f"attention-{number + 1}",
                title=attention_weights.title(trace, one),
                build=partial(_square, trace, one),
                caption=attention_weights.caption(one),
            )


def _square(trace: RunTrace, attention: PackedAttention) -> Chart:
    return attention_weights.attention_weights(trace, attention).properties(height=SQUARE_HEIGHT)


def _machine(trace: RunTrace) -> Iterator[NamedChart]:
    """Yield how busy the machine was, as far as it said."""
    if trace.telemetry:
        yield _of(trace, "utilisation", "Utilisation", utilization.utilization)
    if any(sample.power_w is not None for sample in trace.telemetry):
        yield _of(trace, "power", "Power", utilization.power)


def comparison_charts(subjects: Sequence[Subject]) -> tuple[NamedChart, ...]:
    """Return the charts of runs side by side."""
    ceilings = shared_ceilings(subjects)
    is_counted = any(compare_rows.roofline_rows(one) for one in subjects)
    points = NamedChart(
        name="roofline-points",
        title="Roofline",
        build=partial(compare.roofline_points, subjects, ceilings),
        caption="Squares: prefill. Circles: decode. FLOPs and bytes counted, step times measured.",
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
            caption="Measured on the cache's own tensors; of a batch, one row's part.",
        ),
        *((points,) if is_counted else ()),
    )


def shared_ceilings(subjects: Sequence[Subject]) -> Ceilings | None:
    """Return the roofs measured where the runs were made; None where the runs do not share any."""
    infos = [sample.trace.info for subject in subjects for sample in subject.samples]
    is_shared = len({(info.device.name, info.device.dtype) for info in infos}) == 1
    measured = [info.ceilings for info in infos if info.ceilings is not None]
    return measured[-1] if is_shared and measured else None


def titled(chart: NamedChart, traces: Sequence[RunTrace]) -> Chart:
    """Return the chart under its title and what it was made with, to stand by itself.

    Args:
        chart: The chart.
        traces: The runs it shows.
    """
    made = dict.fromkeys(_made_with(trace) for trace in traces)
    lines = [*made][:MOST_SUBTITLES]
    if len(made) > len(lines):
        lines[-1] = f"and {len(made) - len(lines) + 1} more"
    title = alt.TitleParams(text=chart.title, subtitle=lines, anchor="start")
    return chart.build().properties(title=title)


def _made_with(trace: RunTrace) -> str:
    info = trace.info
    parts = (info.model_id, info.device.dtype, info.device.name, date_text(info.started_at))
    return " \u00b7 ".join(parts)


def styled_spec(chart: Chart) -> dict[str, object]:
    """Return the Vega-Lite spec with its rows, on white, as wide as its place."""
    spec = with_present_legends(with_rows_only(chart).to_dict())
    return {**spec, "config": {**spec.get("config", {}), **CONFIG}}


def chart_spec(chart: Chart) -> dict[str, object]:
    """Return the Vega-Lite spec with its rows, on white, at a size of its own."""
    return {**styled_spec(chart), "width": WIDTH, "height": HEIGHT}


def spec_json(chart: Chart) -> str:
    """Return the spec as a file."""
    return json.dumps(finite(chart_spec(chart)), indent=1, allow_nan=False)


def png(chart: Chart) -> bytes:
    """Return the chart as a PNG picture."""
    return vl_convert.vegalite_to_png(chart_spec(chart), scale=PNG_SCALE)


def svg(chart: Chart) -> str:
    """Return the chart as an SVG picture."""
    return vl_convert.vegalite_to_svg(chart_spec(chart))
