"""Every chart as data: its rows, scales and titles, whatever the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inference.records.model import LayerType
from inference.records.options import CacheKind
from inference.records.run import RunTrace
from inference.records.telemetry import Unavailable
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts.axes import MAX_BARS
from visuals.charts.kv_cache import cache_growth, cache_layers, counted_bytes, tokens_per_layer
from visuals.charts.kv_cache import caption as cache_caption
from visuals.charts.latency import caption as latency_caption
from visuals.charts.latency import decode_step_times, prefill_step_times
from visuals.charts.theme import DECODE, KV, PREFILL, Chart
from visuals.charts.utilization import (
    OF_GPU,
    missing,
    newest_readings,
    power,
    power_rows,
    reading_rows,
    utilization,
)

ChartFunction = Callable[[RunTrace | None], Chart]
CHARTS: list[ChartFunction] = [
    prefill_step_times,
    decode_step_times,
    cache_growth,
    cache_layers,
    tokens_per_layer,
    utilization,
    power,
]
every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.__name__)
LONG = trace_of([b"a", b"b", b"c"], [b"d", b"e", b"f", b"g"], spare_bytes=128)


def _spec(chart: Chart) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return a chart's spec without its rows, and the rows by name."""
    spec = chart.to_dict()
    return spec, spec.pop("datasets", {})


@every_chart
def test_the_spec_is_the_same_for_any_run_and_for_none(chart: ChartFunction) -> None:
    short_spec, _ = _spec(chart(trace_of([b"x"], [b"y"])))
    long_spec, _ = _spec(chart(LONG))
    live_spec, rows = _spec(chart(None))

    assert short_spec == long_spec == live_spec
    assert rows == {}


@every_chart
@pytest.mark.parametrize(
    "trace", [empty_trace(), trace_of([b"x"], [b"y"])], ids=["no step", "one step"]
)
def test_a_run_with_no_step_or_one_has_a_chart(chart: ChartFunction, trace: RunTrace) -> None:
    spec, datasets = _spec(chart(trace))

    named = {layer["data"]["name"] for layer in spec["layer"]}
    assert named == set(datasets)


@every_chart
def test_every_encoding_states_its_type(chart: ChartFunction) -> None:
    spec, _ = _spec(chart(LONG))

    assert spec["layer"]
    for layer in spec["layer"]:
        for name, channel in layer["encoding"].items():
            if "field" in channel and name not in ("x2", "y2"):
                assert channel["type"] in ("quantitative", "nominal", "ordinal")


def test_each_phase_has_its_own_chart_in_its_own_colour_and_unit() -> None:
    for chart, colour, steps in [(prefill_step_times, PREFILL, 1), (decode_step_times, DECODE, 3)]:
        spec, datasets = _spec(chart(LONG))
        bars = spec["layer"][0]

        assert bars["mark"]["color"] == colour
        assert bars["encoding"]["y"]["title"] == "ms per step"
        assert [row["ms"] for row in datasets[chart.__name__]] == [50.0] * steps


def test_a_cold_step_is_named_and_a_warm_one_is_not() -> None:
    _, datasets = _spec(decode_step_times(LONG))

    assert [(row["kind"], row["note"]) for row in datasets["decode_step_times"]] == [
        ("cold", "cold"),
        ("warm", None),
        ("warm", None),
    ]


def test_the_names_of_steps_stand_above_the_plot_once_for_each_run_of_them() -> None:
    """Beside its bar a name lay on the bars next to it."""
    spec, _ = _spec(decode_step_times(LONG))
    notes, _ = [layer for layer in spec["layer"] if layer["mark"].get("type") == "text"]

    assert notes["encoding"]["y"] == {"value": 0}
    assert notes["mark"]["baseline"] == "bottom"
    assert notes["transform"][0]["window"] == [{"op": "lag", "field": "kind", "as": "before"}]
    assert "datum.note !== datum.before" in notes["transform"][1]["filter"]


def test_a_disturbed_step_is_hollow_and_counted_in_the_caption() -> None:
    """A step that other programs stretched looked like any other."""
    slow = replace(LONG.events[3], duration_s=0.2, run_delay_s=0.15)
    events = (*(replace(event, run_delay_s=0.0) for event in LONG.events[:3]), slow)
    spec, datasets = _spec(decode_step_times(replace(LONG, events=events)))
    [bars] = [layer for layer in spec["layer"] if layer["mark"].get("type") == "bar"]

    assert datasets["decode_step_times"][-1]["kind"] == "disturbed"
    assert datasets["decode_step_times"][-1]["note"] is None
    assert bars["encoding"]["fillOpacity"]["condition"]["test"] == "datum.kind === 'warm'"
    assert latency_caption(events) == (
        "This step 200\u00a0ms, disturbed; median of 1 warm step 50.0\u00a0ms. 1 of 4 steps "
        "disturbed by other programs."
    )


def test_an_observed_step_is_named() -> None:
    events = (*LONG.events[:3], replace(LONG.events[3], observed=True))
    _, datasets = _spec(decode_step_times(replace(LONG, events=events)))

    assert datasets["decode_step_times"][-1]["note"] == "observed"


def test_the_axis_of_step_times_ends_in_a_row_so_that_the_spec_need_not_change() -> None:
    _, datasets = _spec(decode_step_times(LONG))

    assert datasets["decode_step_times_extent"] == [{"x": 16.5, "y": pytest.approx(80.0)}]


def test_an_outlier_is_cut_off_and_marked_instead_of_flattening_every_bar() -> None:
    steady = trace_of([b"a"], [b"b", b"c"] * 10)
    *events, last = steady.events
    longer = replace(steady, events=(*events, replace(last, duration_s=4.3)))

    _, before = _spec(decode_step_times(steady))
    spec, after = _spec(decode_step_times(longer))

    end = before["decode_step_times_extent"][0]["y"]
    assert after["decode_step_times_extent"][0]["y"] == end < 100
    assert after["decode_step_times"][-1]["ms"] == 4300.0
    bars, _, _, _, marks, value = spec["layer"]
    assert bars["mark"]["clip"] is True
    assert bars["encoding"]["y"]["scale"]["domainMax"]["expr"].endswith("{y: 1}).y")
    assert marks["mark"]["shape"] == "triangle-up"
    assert value["transform"][-1]["calculate"] == "format(datum.ms, ',.3r') + ' ms'"


def test_a_long_run_is_thinned_to_what_a_chart_shows() -> None:
    long = trace_of([b"a"], [b"b", b"c"] * 1500)

    for chart in (cache_growth, cache_layers, utilization):
        _, datasets = _spec(chart(long))
        assert 300 < len(datasets[chart.__name__]) <= 810
    _, datasets = _spec(decode_step_times(long))
    assert MAX_BARS / 2 < len(datasets["decode_step_times"]) <= MAX_BARS + 1


def test_the_cache_chart_draws_counted_bytes_dashed_beside_measured_ones() -> None:
    spec, datasets = _spec(cache_growth(LONG))

    area, used, allocated, formula = spec["layer"][:4]
    assert area["mark"]["color"] == KV
    assert area["encoding"]["y"]["title"] == "MiB"
    names = [line["transform"][0]["calculate"] for line in (used, allocated, formula)]
    assert names == ["'stored'", "'reserved'", "'counted'"]
    scale = formula["encoding"]["strokeDash"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        "stored": [1, 0],
        "reserved": [1, 0],
        "counted": [5, 3],
    }
    assert formula["encoding"]["color"]["legend"]["orient"] == "top"
    first = datasets["cache_growth"][0]
    assert first["used"] == first["counted"] == pytest.approx(3 * 64 / 2**20, abs=1e-6)
    assert first["allocated"] > first["used"]


def test_allocated_bytes_that_equal_used_ones_are_a_gap() -> None:
    _, datasets = _spec(cache_growth(trace_of([b"a"], [b"b"])))

    assert datasets["cache_growth"][0]["allocated"] is None


def test_nothing_is_counted_where_layers_drop_tokens() -> None:
    shape = replace(LONG.info.shape, layer_types=(LayerType.SLIDING, LayerType.FULL))
    info = replace(LONG.info, shape=shape)

    assert counted_bytes([3], info) is None
    assert cache_caption(LONG.events, info).startswith("+1 row in each layer; ")


def test_layers_are_stacked_in_bands_that_sum_to_the_stored_bytes() -> None:
    """They summed to the reserved bytes under an axis of bytes stored."""
    spec, datasets = _spec(cache_layers(LONG))

    assert spec["layer"][0]["encoding"]["y"]["stack"] == "zero"
    last = [row for row in datasets["cache_layers"] if row["k"] == 3]
    assert [row["layers"] for row in last] == ["0", "1"]
    assert sum(row["mib"] for row in last) == pytest.approx(6 * 64 / 2**20, abs=2e-6)
    assert LONG.events[-1].cache.allocated_bytes > 6 * 64


def test_a_run_without_bytes_by_layer_has_no_bands() -> None:
    event = LONG.events[0]
    plain = replace(event, cache=replace(event.cache, bytes_per_layer=()))

    _, datasets = _spec(cache_layers(replace(LONG, events=(plain,))))

    assert datasets["cache_layers"] == []


def test_every_layer_shows_the_tokens_it_holds() -> None:
    _, datasets = _spec(tokens_per_layer(LONG))

    assert [(row["k"], row["tokens"]) for row in datasets["tokens_per_layer"]] == [(0, 6), (1, 6)]


def test_readings_are_percent_and_a_missing_one_is_a_gap() -> None:
    _, datasets = _spec(utilization(LONG))

    first = datasets["utilization"][0]
    assert first["CPU, all cores"] == 50.0
    assert first["memory"] == 25.0
    assert first["GPU busy"] is None
    assert power(LONG).to_dict()["datasets"]["power"] == []


def test_what_is_not_available_says_why() -> None:
    assert missing(LONG) == ["This machine has no NVIDIA driver, so not available: GPU busy."]
    assert [reading["name"] for reading in newest_readings(LONG.telemetry)] == [
        "CPU, all cores",
        "CPU, engine",
        "memory",
    ]
    assert newest_readings(()) == []


def test_a_machine_without_a_gpu_says_so_once() -> None:
    """Eleven names in a row were cut off with dots in the middle of a word."""
    reason = "no NVIDIA driver on this machine."
    readings = [*sorted(OF_GPU), "process_memory_bytes"]
    entries = tuple(Unavailable(reading=one, reason=reason) for one in readings)

    [sentence] = missing(replace(LONG, unavailable=entries))
    [partly] = missing(replace(LONG, unavailable=entries[1:]))

    assert sentence == (
        "No NVIDIA driver on this machine, so not available: all readings of a GPU, "
        "the engine's memory."
    )
    assert "all readings" not in partly


def test_readings_that_stopped_for_a_while_are_a_gap_in_the_lines() -> None:
    """A straight line ran over 50 s without a reading."""
    near, *rest = LONG.telemetry
    samples = (near, *(replace(one, at_s=one.at_s + 50.0, power_w=30.0) for one in rest))

    spec, datasets = _spec(utilization(replace(LONG, telemetry=samples)))

    assert spec["layer"][0]["encoding"]["detail"]["field"] == "stretch"
    assert [row["stretch"] for row in datasets["utilization"]] == [0] + [1] * len(rest)
    assert [row["stretch"] for row in power_rows(samples, first=1)] == [1] * len(rest)
    assert {row["stretch"] for row in reading_rows(LONG.telemetry)} == {0}


def test_power_is_drawn_and_read_out_where_the_device_gives_it() -> None:
    samples = tuple(replace(sample, power_w=301.25) for sample in LONG.telemetry)
    _, datasets = _spec(power(replace(LONG, telemetry=samples)))

    assert datasets["power"][0]["w"] == 301.2
    assert newest_readings(samples)[-1]["text"] == "301\u00a0W"


def test_the_cache_says_which_layers_store_rows_and_that_states_are_none() -> None:
    shape = replace(LONG.info.shape, layer_types=(LayerType.RECURRENT, LayerType.FULL))
    without = replace(shape, layer_types=(LayerType.RECURRENT,) * 2)
    held = replace(LONG.events[-1].cache, state_bytes=2**20)
    events = (replace(LONG.events[-1], cache=held),)

    info = replace(LONG.info, shape=shape)
    assert cache_caption(LONG.events, info).startswith("+1 row in 1 of 2 layers; ")
    assert cache_caption(events, replace(LONG.info, shape=without)).replace("\u00a0", " ") == (
        "No keys and values: states of 1.00 MiB, the same after every step."
    )


def test_captions_tell_what_the_newest_step_did() -> None:
    assert latency_caption(()) == "No step yet."
    assert latency_caption(LONG.events[:1]) == (
        "Prefill of 3 tokens took 50.0\u00a0ms, cold: includes first-call costs."
    )
    assert latency_caption(LONG.events) == (
        "This step 50.0\u00a0ms; median of 2 warm steps 50.0\u00a0ms."
    )
    said = cache_caption(LONG.events, LONG.info).replace("\u00a0", " ")
    assert said == "+1 token (64 bytes); 0.000366 MiB stored of 0.000488 MiB reserved."
    assert cache_caption(LONG.events[:1], LONG.info).startswith("+3 tokens (64 bytes each); ")


def test_a_quantised_cache_is_said_in_the_bytes_it_stores() -> None:
    """It read "+1 token (64 bytes)" of a cache that stores a quarter of that."""
    info = replace(LONG.info, cache=CacheKind.QUANTISED)
    event = LONG.events[-1]
    held = replace(event.cache, used_bytes=112, allocated_bytes=112)

    said = cache_caption((replace(event, cache=held),), info).replace("\u00a0", " ")

    assert said == "+1 token (16 bytes, quantised); 0.000107 MiB stored."
    assert counted_bytes([6], info) == 6 * 16 + 2 * 8


def test_a_caption_says_when_a_bar_stands_for_several_steps() -> None:
    """2,000 steps once showed medians of groups without a word, and the spikes were gone."""
    many = tuple(replace(LONG.events[-1], index=index) for index in range(2 * MAX_BARS + 1))

    assert "Each bar is the median of 4 steps." in latency_caption(many)
    assert "Each bar" not in latency_caption(LONG.events)
