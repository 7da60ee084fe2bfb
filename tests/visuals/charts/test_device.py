"""What is drawn and said of a device, from runs built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inference.records.model import Device, MatrixRole, WeightMatrix
from inference.records.options import CacheKind
from inference.records.run import RunTrace
from inference.records.telemetry import TelemetrySample
from tests.builders import TINY_SHAPE
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts.device import (
    COUNTERS,
    achieved_rows,
    cache_sentence,
    counter_rows,
    counters_over_time,
    energy_rows,
    launch_rows,
    launch_sentence,
    launches,
)
from visuals.charts.theme import DECODE, HOST
from visuals.charts.utilization import newest_readings, remarks

MATRIX = WeightMatrix(
    name="w", in_features=16, out_features=16, copies=1, bytes=1024, role=MatrixRole.LINEAR
)
GPU = Device(kind="cuda", name="a test GPU", dtype="bfloat16", memory_bytes=None)
FULL = TelemetrySample(
    at_s=0.5,
    gpu_busy_ratio=0.9,
    memory_controller_busy_ratio=0.4,
    sm_clock_hz=1.98e9,
    memory_clock_hz=2.6e9,
    temperature_c=61.0,
    throttle_reasons=("power limit",),
    pcie_tx_bytes_per_s=1.5e6,
)


def gpu_trace(host_s: float | None, samples: Sequence[TelemetrySample] = ()) -> RunTrace:
    """Return a run of four decode steps of 50 ms, two of them cold, on a GPU."""
    trace = trace_of([b"a"], [b"b", b"c", b"d", b"e"])
    events = tuple(replace(event, host_s=host_s) for event in trace.events)
    info = replace(trace.info, device=GPU)
    return replace(trace, info=info, events=events, telemetry=tuple(samples))


def test_each_decode_step_has_its_step_time_and_the_hosts_part_of_it() -> None:
    rows = launch_rows(gpu_trace(0.01))

    assert [(row["step"], row["what"], row["ms"]) for row in rows[:2]] == [
        (1, "step time", 50.0),
        (1, "launched by the host", 10.0),
    ]
    assert len(rows) == 6


def test_the_launch_chart_has_a_colour_for_each_line_and_a_unit() -> None:
    spec = launches(gpu_trace(0.01)).to_dict()

    assert spec["encoding"]["color"]["scale"]["range"] == [DECODE, HOST]
    assert spec["encoding"]["y"]["title"] == "time, ms"
    assert launches(empty_trace()).to_dict()["datasets"] == {"launches": []}


@pytest.mark.parametrize(
    ("host_s", "word"), [(0.001, "**ahead**"), (0.049, "**behind**")], ids=["ahead", "behind"]
)
def test_the_sentence_says_whether_the_host_is_ahead(host_s: float, word: str) -> None:
    sentence = launch_sentence(gpu_trace(host_s))

    assert word in sentence
    assert "50.0\u00a0ms" in sentence


def test_on_a_cpu_no_host_runs_ahead() -> None:
    assert launch_sentence(trace_of([b"a"], [b"b", b"c"])).startswith("On a CPU an operation")
    assert launch_rows(trace_of([b"a"], [b"b", b"c"])) == []


def test_each_counter_that_was_read_has_a_row_in_the_units_of_its_axis() -> None:
    rows = {
        counters.key: [row["value"] for row in counter_rows(counters, [FULL])]
        for counters in COUNTERS
    }

    assert rows == {
        "busy": [90.0, 40.0],
        "clocks": [1.98, 2.6],
        "temperature": [61.0],
        "pcie": [1.5],
    }


@pytest.mark.parametrize("counters", COUNTERS, ids=lambda one: one.key)
def test_counters_that_were_not_read_make_an_empty_chart(counters: object) -> None:
    chart = counters_over_time(counters, [TelemetrySample(at_s=0.1)])

    assert chart.to_dict()["datasets"] == {counters.key: []}


def test_unknown_energy_has_its_reason_in_the_table() -> None:
    rows = energy_rows(gpu_trace(0.01))

    assert [row["phase"] for row in rows] == ["prefill", "decode"]
    assert rows[1]["energy per token"] == "the GPU's energy counter was not read, or did not move"


def test_a_busy_time_of_too_few_steps_has_its_reason_in_the_table() -> None:
    trace = gpu_trace(0.01, [FULL])
    shape = replace(TINY_SHAPE, matrices=(MATRIX,), weight_bytes=1024)

    rows = achieved_rows(replace(trace, info=replace(trace.info, shape=shape)))

    busy = [row["reading"] for row in rows if "busy" in str(row["decode steps"])]
    assert len(busy) == 2
    assert all(str(value).startswith("too short: decode steps") for value in busy)


def test_a_static_cache_says_how_much_of_its_room_is_used() -> None:
    trace = trace_of([b"a"], [b"b"], spare_bytes=64)
    static = replace(trace, info=replace(trace.info, cache=CacheKind.STATIC))

    assert "(50.0\u00a0%)" in cache_sentence(static)
    assert cache_sentence(trace) == ""


def test_the_panel_lists_the_gpus_other_counters_and_why_clocks_are_limited() -> None:
    readings = {row["name"]: row["text"] for row in newest_readings([FULL])}

    assert readings["memory controller"] == "40.0\u00a0%"
    assert readings["GPU clock"] == "1.98\u00a0GHz"
    assert readings["clocks limited by"] == "power limit"


def test_a_machine_without_a_gpu_lists_none_of_them() -> None:
    names = {row["name"] for row in newest_readings(trace_of([b"a"], [b"b"]).telemetry)}

    assert not names & {"memory controller", "GPU clock", "clocks limited by"}


def test_disturbances_come_before_what_was_not_read() -> None:
    said = remarks(gpu_trace(0.01, [FULL]))

    assert said[0].startswith("The GPU's clocks were held down in 1 of 1 samples")
    assert len(said) == 2
