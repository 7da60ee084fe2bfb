"""The roofline as data: counted places, roofs with their source, and what is said of a point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.counting.costs import step_cost
from inference.records.costs import Source
from inference.records.run import RunTrace
from inference.records.steps import Part
from inference.runs.run_file import to_json
from tests.builders import run_from_json
from tests.visuals.counted import COUNTED_SHAPE, ROOFS, counted_trace, with_parts
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts import roofline_rows
from visuals.charts.roofline import roofline_attention, roofline_linear, roofline_step
from visuals.charts.roofline_rows import (
    NOT_COUNTED,
    NOT_MEASURED,
    alarms,
    caption,
    lower_bound_s,
    roofs_version,
)
from visuals.charts.theme import PROVENANCE_DASHES

CHARTS = {
    Part.STEP: roofline_step,
    Part.LINEAR: roofline_linear,
    Part.ATTENTION: roofline_attention,
}
every_part = pytest.mark.parametrize("part", Part, ids=str)


def _data(trace: RunTrace | None, part: Part = Part.STEP) -> dict[str, list[dict[str, Any]]]:
    return CHARTS[part](trace).to_dict().get("datasets", {})


def test_a_point_is_the_counted_work_over_the_measured_step_time() -> None:
    trace = counted_trace()
    cost = step_cost(COUNTED_SHAPE, trace.events[2].rows)

    row = _data(trace)["roofline_step"][2]

    assert row["x"] == pytest.approx(cost.flops / cost.bytes_moved, rel=1e-3)
    assert row["y"] == pytest.approx(cost.flops / 0.05, rel=1e-3)
    assert (row["phase"], row["kind"]) == ("decode", "warm")
    assert row["pct"] == pytest.approx(100 * cost.bytes_moved / 1e6 / 0.05, abs=0.06)


@every_part
def test_the_spec_is_the_same_for_any_run_and_for_none(part: Part) -> None:
    specs = [CHARTS[part](trace).to_dict() for trace in (None, empty_trace(), counted_trace())]
    for spec in specs:
        spec.pop("datasets", None)

    assert specs[0] == specs[1] == specs[2]


@every_part
def test_every_dataset_of_the_spec_is_filled_by_a_run(part: Part) -> None:
    spec = CHARTS[part](counted_trace()).to_dict()

    named = {layer["data"]["name"] for layer in spec["layer"]}
    assert named == set(spec["datasets"])


@every_part
def test_a_roof_is_never_drawn_untagged(part: Part) -> None:
    """Every row of a roof says where it comes from, and the style of its line follows from that."""
    trace = counted_trace(device="NVIDIA H100 PCIe")
    spec = CHARTS[part](trace).to_dict()
    name = f"roofline_{part.value}"

    sources = {str(source) for source in Source}
    roofs = spec["datasets"][f"{name}_roofs"] + spec["datasets"][f"{name}_ridges"]
    assert {row["source"] for row in roofs} == {"measured", "datasheet"} <= sources
    ridges = spec["datasets"][f"{name}_ridges"]
    assert ridges
    assert [row for row in ridges if row["source"] not in row["label"]] == []
    [layer] = [one for one in spec["layer"] if one["data"]["name"] == f"{name}_roofs"]
    dash = layer["encoding"]["strokeDash"]
    assert dash["field"] == "source"
    assert dict(zip(dash["scale"]["domain"], map(tuple, dash["scale"]["range"]), strict=True)) == (
        PROVENANCE_DASHES
    )


def test_without_measured_roofs_only_points_are_drawn_and_the_caption_says_where_to_measure() -> (
    None
):
    trace = counted_trace(roofs=None)

    data = _data(trace)

    assert data["roofline_step_roofs"] == data["roofline_step_ridges"] == []
    assert len(data["roofline_step"]) == 4
    assert all(row["pct"] is None for row in data["roofline_step"])
    assert caption(trace.events, trace.info, Part.STEP).endswith(NOT_MEASURED)


def test_a_data_sheet_without_a_rate_for_the_dtype_draws_no_roof() -> None:
    trace = counted_trace(roofs=None, device="Tesla T4")
    info = replace(trace.info, device=replace(trace.info.device, dtype="bfloat16"))

    assert roofline_rows.roofs_of(info) == ()


def test_the_roof_has_its_corner_at_the_ridge_and_runs_to_both_ends() -> None:
    data = _data(counted_trace())

    low, corner, high = data["roofline_step_roofs"]
    (start, end) = data["roofline_step_extent"]
    assert (low["x"], high["x"]) == (start["x"], end["x"])
    assert (corner["x"], corner["y"]) == (ROOFS.ridge_flops_per_byte, ROOFS.flops_per_s)
    assert low["y"] == pytest.approx(low["x"] * ROOFS.bytes_per_s)


def test_the_axes_hold_every_point_and_end_at_powers_of_ten() -> None:
    data = _data(counted_trace(prompt_tokens=40, steps=6))

    (start, end) = data["roofline_step_extent"]
    assert len(data["roofline_step"]) == 6
    for row in data["roofline_step"]:
        assert start["x"] <= row["x"] <= end["x"]
        assert start["y"] <= row["y"] <= end["y"]
    for edge in (start["x"], start["y"], end["x"], end["y"]):
        assert f"{edge:e}".startswith("1.000000")


def test_parts_have_points_only_in_the_steps_where_they_were_timed() -> None:
    trace = with_parts(counted_trace(), 3)
    cost = step_cost(COUNTED_SHAPE, trace.events[3].rows)

    [linear] = _data(trace, Part.LINEAR)["roofline_linear"]
    [attention] = _data(trace, Part.ATTENTION)["roofline_attention"]

    assert linear["y"] == pytest.approx(cost.linear_flops / 0.03, rel=1e-3)
    assert attention["y"] == pytest.approx(cost.attention_flops / 0.01, rel=1e-3)
    assert attention["x"] == pytest.approx(
        cost.attention_flops / (cost.kv_read_bytes + cost.kv_write_bytes), rel=1e-3
    )
    assert _data(trace)["roofline_step"][3]["kind"] == "observed"


def test_the_newest_point_is_named_by_its_phase() -> None:
    trace = counted_trace()

    [first] = _data(replace(trace, events=trace.events[:1]))["roofline_step_now"]
    [last] = _data(trace)["roofline_step_now"]

    assert (first["label"], last["label"]) == ("prefill", "decode")
    assert last["k"] == 3


def test_captions_name_the_roof_the_share_and_the_verdict() -> None:
    slow = counted_trace(step_time_s=1.0)
    fast = counted_trace(step_time_s=0.03)

    assert caption((), slow.info, Part.STEP) == "No step yet."
    assert "of the memory roof: overhead-bound" in caption(slow.events, slow.info, Part.STEP)
    assert "of the memory roof: memory-bound" in caption(fast.events, fast.info, Part.STEP)
    assert caption(fast.events[:1], fast.info, Part.STEP).endswith("(cold step).")
    assert "timed in parts" in caption(fast.events, fast.info, Part.LINEAR)


def test_a_point_above_a_roof_raises_an_alarm_for_its_own_part_only() -> None:
    """A point of one part was warned of while another part's points were shown."""
    trace = counted_trace(step_time_s=0.001)

    told = alarms(trace.events, trace.info)

    assert set(told) == {"step"}
    assert told["step"].startswith("Step 3 lies ")
    assert told["step"].endswith("above the measured roof; the roof may be out of date.")
    assert alarms(counted_trace(step_time_s=1.0).events, trace.info) == {}


def test_the_parts_of_a_step_above_a_roof_are_named() -> None:
    slow = with_parts(counted_trace(step_time_s=1.0), 3)
    parts = tuple(replace(one, duration_s=1e-9) for one in slow.events[3].parts)
    events = (*slow.events[:3], replace(slow.events[3], parts=parts))

    told = alarms(events, slow.info)

    assert told["linear"].startswith("The linear part of step 3 lies ")
    assert told["attention"].startswith("The attention of step 3 lies ")


def test_another_roof_is_another_version() -> None:
    info = counted_trace().info
    higher = replace(ROOFS, bytes_per_s=ROOFS.bytes_per_s * 1.01)

    assert roofs_version(replace(info, ceilings=None)) == ""
    assert roofs_version(info) != roofs_version(replace(info, ceilings=higher))


def test_a_run_file_keeps_roofs_and_the_times_of_parts() -> None:
    trace = with_parts(counted_trace(), 3)

    assert run_from_json(to_json(trace)) == trace


def test_a_run_without_matrices_is_said_and_draws_nothing() -> None:
    trace = trace_of([b"a"], [b"b"])

    assert _data(trace)["roofline_step"] == []
    assert caption(trace.events, trace.info, Part.STEP) == NOT_COUNTED
    assert lower_bound_s(trace.events[0], replace(trace.info, ceilings=ROOFS)) is None
