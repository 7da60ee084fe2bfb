"""Roofs measured on scripted clocks, and kept between runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

import pytest
import torch

from inference.calibration import ceilings, ceilings_store
from inference.calibration.ceilings import (
    REPEATS,
    WARM_UPS,
    RoofPlan,
    last_cache_bytes,
    measure_ceilings,
    read_sizes,
)
from inference.calibration.ceilings_store import (
    ceilings_for,
    ceilings_json,
    save_ceilings,
    saved_ceilings,
)
from inference.engine.clock import StepClock
from inference.kernels.streams import stream_library
from inference.records.costs import Source
from inference.records.errors import OutOfMemoryError
from inference.records.rooflines import MeasuredCeilings
from inference.storage.folders import CACHE_VARIABLE
from tests.doubles import ScriptedClock, ScriptedDelays

CPU = torch.device("cpu")
MIB = 1 << 20
STEP_TIME_S = 2.0**-7
KERNELS = 3 + (stream_library(CPU) is not None)


def measured(
    clock: StepClock | None = None,
    orders: tuple[int, ...] = (8, 16),
    delays: Callable[[], ScriptedDelays] = ScriptedDelays,
    dtype: torch.dtype = torch.float32,
) -> MeasuredCeilings:
    """Return roofs measured on a scripted clock, every timing 8 ms by default."""
    plan = RoofPlan(
        read_bytes=(MIB, 2 * MIB),
        orders=orders,
        clock=clock or ScriptedClock(repeat(STEP_TIME_S)),
        delays=delays,
    )
    result = measure_ceilings(CPU, dtype, plan=plan)
    assert result is not None
    return result


def test_roofs_are_the_best_step_times_of_their_sweeps() -> None:
    result = measured()

    assert result.ceilings.bytes_per_s == 2 * MIB / STEP_TIME_S
    assert result.ceilings.flops_per_s == 2 * 16**3 / STEP_TIME_S
    assert result.ceilings.source is Source.MEASURED
    assert result.best_read.spread_ratio == 0
    assert (len(result.reads), len(result.products)) == (2 * KERNELS, 2)


def test_warm_step_times_are_left_out_and_the_spread_is_kept() -> None:
    timings = [9.0] * WARM_UPS + [1.0, 2.0, 4.0] + [2.0] * (REPEATS - 3)
    clock = ScriptedClock([*timings, *repeat(1e6, 1000)])

    first = measured(clock).reads[0]

    assert (first.best, first.median, first.worst) == (MIB, MIB / 2, MIB / 4)
    assert first.spread_ratio == 1.5
    assert first.repeats == REPEATS


def test_a_disturbed_timing_of_a_roof_is_measured_again() -> None:
    timings = [9.0] * WARM_UPS + [1.0, 8.0] + [2.0] * (REPEATS - 1)
    clock = ScriptedClock([*timings, *repeat(1e6, 1000)])
    lost_s = iter([0.0] * (WARM_UPS + 1) + [7.0])

    first = measured(clock, delays=lambda: ScriptedDelays(next(lost_s, 0.0))).reads[0]

    assert (first.best, first.worst, first.repeats) == (MIB, MIB / 2, REPEATS)
    assert not first.is_disturbed


def test_a_roof_that_was_disturbed_all_the_time_says_so() -> None:
    result = measured(delays=lambda: ScriptedDelays(STEP_TIME_S))

    assert result.is_disturbed
    assert json.loads(ceilings_json(result))["disturbed"] is True
    assert not measured().is_disturbed


def test_a_step_time_too_short_for_the_clock_repeats_its_kernel() -> None:
    result = measured(ScriptedClock(repeat(0.001)))

    calls = 5**WARM_UPS  # each warm timing of 1 ms asks for five times the calls, to reach 5 ms
    assert result.best_read.best == pytest.approx(2 * MIB * calls / 0.001)


def test_orders_stop_growing_when_a_product_takes_too_long() -> None:
    assert len(measured(ScriptedClock(repeat(100.0)), orders=(8, 16, 32)).products) == 1


def test_a_sweep_ends_where_its_next_size_would_not_fit_into_ten_seconds() -> None:
    """It went on with 12 s a timing where a number format is slow."""
    plan = RoofPlan(
        read_bytes=(MIB, 2 * MIB, 4 * MIB),
        orders=(8, 16, 32),
        clock=ScriptedClock(repeat(0.1)),
        delays=ScriptedDelays,
    )

    result = measure_ceilings(CPU, torch.float32, plan=plan)

    assert result is not None
    assert len(result.reads) == KERNELS  # nine timings of each, then twice as many bytes
    assert len(result.products) == 1


def test_our_own_read_is_among_those_that_make_the_memory_roof() -> None:
    labels = [point.label for point in measured().reads]

    has_kernel = stream_library(CPU) is not None
    assert any(label.startswith("four streams over") for label in labels) is has_kernel


def test_being_asked_to_stop_gives_nothing() -> None:
    plan = RoofPlan(read_bytes=(MIB,), orders=(8,), clock=ScriptedClock(repeat(STEP_TIME_S)))

    assert measure_ceilings(CPU, torch.float32, should_stop=lambda: True, plan=plan) is None


def test_progress_rises_to_one() -> None:
    ratios: list[float] = []
    plan = RoofPlan(read_bytes=(MIB,), orders=(8, 16), clock=ScriptedClock(repeat(STEP_TIME_S)))

    measure_ceilings(CPU, torch.float32, lambda ratio, _text: ratios.append(ratio), plan=plan)

    assert ratios == sorted(ratios)
    assert (ratios[0], ratios[-1]) == (0.0, 1.0)


def test_reads_go_well_beyond_the_last_cache() -> None:
    assert read_sizes(300 * MIB, 100_000 * MIB) == (1200 * MIB, 2400 * MIB, 4800 * MIB)


def test_reads_stay_within_a_quarter_of_the_free_memory() -> None:
    assert read_sizes(300 * MIB, 12_000 * MIB) == (1200 * MIB, 2400 * MIB, 3000 * MIB)


def test_a_small_cache_is_no_reason_for_a_small_read() -> None:
    assert min(read_sizes(MIB, 100_000 * MIB)) == 128 * MIB


def test_too_little_memory_is_said_in_a_sentence() -> None:
    with pytest.raises(OutOfMemoryError, match="100 MiB of memory are free"):
        read_sizes(MIB, 100 * MIB)


def test_the_last_cache_is_known_or_none() -> None:
    size = last_cache_bytes(CPU)

    assert size is None or size >= 64 << 10


def test_kept_roofs_are_found_again_equal(tmp_path: Path) -> None:
    result = measured()

    assert save_ceilings(result, CPU, torch.float32, tmp_path)

    assert saved_ceilings(CPU, torch.float32, tmp_path) == result
    assert saved_ceilings(CPU, torch.bfloat16, tmp_path) is None


def test_products_of_16_bits_are_timed_as_prefill_computes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A roof below what prefill reaches was the other way round."""
    labels: list[str] = []
    for is_slow in (False, True):
        for module in (ceilings, ceilings_store):
            monkeypatch.setattr(module, "is_widened", lambda _dtype, slow=is_slow: slow)
        result = measured(dtype=torch.float16)
        labels.append(result.products[0].label)
        assert saved_ceilings(CPU, torch.float16, tmp_path) is None
        save_ceilings(result, CPU, torch.float16, tmp_path)
        assert saved_ceilings(CPU, torch.float16, tmp_path) == result

    assert labels == ["8x8 float16 matrix product", "8x8 float16 matrix product in float32"]


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    save_ceilings(measured(), CPU, torch.float32, tmp_path)
    next(tmp_path.glob("*.json")).write_text("{", encoding="utf-8")

    assert saved_ceilings(CPU, torch.float32, tmp_path) is None


def test_kept_roofs_are_used_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    result = measured()
    save_ceilings(result, CPU, torch.float32)

    assert ceilings_for(CPU, torch.float32, should_stop=lambda: True) == result


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")

    assert not save_ceilings(measured(), CPU, torch.float32, blocked / "folder")


def test_roofs_that_cannot_be_kept_leave_no_part_of_a_file_behind(tmp_path: Path) -> None:
    """The scratch file used to stay in the folder."""
    save_ceilings(measured(), CPU, torch.float32, tmp_path)
    [kept] = tmp_path.iterdir()
    kept.unlink()
    kept.mkdir()

    assert not save_ceilings(measured(), CPU, torch.float32, tmp_path)
    assert list(tmp_path.iterdir()) == [kept]


def test_the_json_gives_both_roofs_with_their_spread_and_where_they_were_measured() -> None:
    fields = json.loads(ceilings_json(measured()))

    assert fields["source"] == "measured"
    assert fields["ridge_flops_per_byte"] == fields["flops_per_s"] / fields["bytes_per_s"]
    assert {"flops_spread_ratio", "bytes_spread_ratio", "machine", "measured_at"} <= fields.keys()
    assert [point["size"] for point in fields["products"]] == [8, 16]
