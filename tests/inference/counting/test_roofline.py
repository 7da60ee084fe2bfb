"""Points, bounds and crossovers, worked by hand."""

from __future__ import annotations

import pytest

from inference.counting.costs import step_cost
from inference.counting.public_configs import public_config
from inference.counting.roofline import (
    NOISE_RATIO,
    PartWork,
    attainable_flops_per_s,
    bound_of,
    lower_bound_seconds,
    roofline_point,
    work_of,
)
from inference.counting.what_if import (
    compute_bound_batch,
    compute_bound_prompt_tokens,
    first_count,
    kv_overtakes_batch,
    what_if,
    with_kv_bytes,
)
from inference.models.config_shapes import shape_of_config
from inference.records.costs import Ceilings, Source, StepCost
from inference.records.errors import InputError
from inference.records.model import ModelShape
from inference.records.rooflines import Bound, Part, Workload

COST = StepCost(
    linear_flops=900, attention_flops=100, weight_bytes=80, kv_read_bytes=15, kv_write_bytes=5
)


def roofs(flops_per_s: float = 1000.0, bytes_per_s: float = 10.0) -> Ceilings:
    """Return measured roofs."""
    return Ceilings(
        flops_per_s=flops_per_s, bytes_per_s=bytes_per_s, source=Source.MEASURED, method="by hand"
    )


def step(flops: int, moved: int) -> PartWork:
    """Return the work of a whole step."""
    return PartWork(part=Part.STEP, flops=flops, bytes_moved=moved)


def llama() -> ModelShape:
    """Return Llama-3.1-8B's shape in bfloat16."""
    return shape_of_config(public_config("Llama-3.1-8B"), "bfloat16")


@pytest.mark.golden
def test_the_ridge_is_where_both_roofs_meet() -> None:
    device = roofs(790e12, 4.3e12)

    assert device.ridge_flops_per_byte == pytest.approx(183.7, abs=0.05)
    assert attainable_flops_per_s(device, 1000) == 790e12
    assert attainable_flops_per_s(device, 10) == 43e12


@pytest.mark.golden
@pytest.mark.parametrize(
    ("batch", "milliseconds"),
    [(1, 4.98), (8, 12.13), (16, 20.30), (32, 36.65), (64, 69.33), (240, 249.09)],
)
def test_llama_2_13b_takes_the_scaling_books_time(batch: int, milliseconds: float) -> None:
    """Source: How to Scale Your Model, inference chapter: eight TPU v5e, context 8,192."""
    cost = StepCost(
        linear_flops=0,
        attention_flops=0,
        weight_bytes=26 * 10**9,
        kv_read_bytes=batch * 67 * 10**8,
        kv_write_bytes=0,
    )

    seconds = lower_bound_seconds(cost, roofs(bytes_per_s=6.56e12))

    assert 1e3 * seconds == pytest.approx(milliseconds, abs=0.006)


@pytest.mark.golden
def test_llama_2_13b_counts_what_the_scaling_book_rounds() -> None:
    shape = shape_of_config(public_config("Llama-2-13B"), "bfloat16")

    cost = step_cost(shape, [(1, 8192)])

    assert cost.kv_read_bytes == pytest.approx(6.7e9, rel=0.01)
    assert cost.weight_bytes == pytest.approx(26e9, rel=0.02)


def test_the_parts_of_a_step_add_up_to_it() -> None:
    whole, linear, attention = (work_of(COST, part) for part in Part)

    assert (linear.flops, linear.bytes_moved) == (900, 80)
    assert (attention.flops, attention.bytes_moved) == (100, 20)
    assert whole.flops == linear.flops + attention.flops
    assert whole.bytes_moved == linear.bytes_moved + attention.bytes_moved


def test_a_point_left_of_the_ridge_is_memory_bound_and_right_of_it_compute_bound() -> None:
    left = roofline_point(step(500, 100), 12.5, roofs())
    right = roofline_point(step(20_000, 100), 25.0, roofs())

    assert left is not None
    assert (left.bound, left.roof_ratio, left.lower_bound_s) == (Bound.MEMORY, 0.8, 10.0)
    assert (left.flops_per_s, left.bytes_per_s, left.flops_per_byte) == (40.0, 8.0, 5.0)
    assert right is not None
    assert (right.bound, right.roof_ratio, right.alarm) == (Bound.COMPUTE, 0.8, "")


def test_a_point_far_below_both_roofs_is_overhead_bound() -> None:
    point = roofline_point(step(500, 100), 100.0, roofs())

    assert point is not None
    assert point.bound is Bound.OVERHEAD


@pytest.mark.parametrize("work", [step(500, 100), step(20_000, 100)])
def test_a_point_above_a_roof_raises_an_alarm(work: PartWork) -> None:
    point = roofline_point(work, lower_bound_seconds(work, roofs()) / 2, roofs())

    assert point is not None
    assert point.roof_ratio == 2
    assert point.alarm == "lies 100 % above the measured roof; the roof may be out of date"


def test_a_point_within_the_stated_tolerance_raises_none() -> None:
    work = step(500, 100)
    least_s = lower_bound_seconds(work, roofs())

    within = roofline_point(work, least_s / (1 + NOISE_RATIO), roofs())
    beyond = roofline_point(work, least_s / (1.01 + NOISE_RATIO), roofs())

    assert within is not None
    assert within.alarm == ""
    assert beyond is not None
    assert beyond.alarm.startswith("lies 6 % above")


def test_utilisation_is_of_the_datasheets_rates() -> None:
    point = roofline_point(step(500, 100), 20.0, roofs(), roofs(5000.0, 20.0))

    assert point is not None
    assert point.mfu_ratio == 500 / (20 * 5000)
    assert point.mbu_ratio == 100 / (20 * 20)


def test_without_a_datasheet_utilisation_is_not_known() -> None:
    point = roofline_point(step(500, 100), 20.0, roofs())

    assert point is not None
    assert point.mfu_ratio is None
    assert point.mbu_ratio is None


@pytest.mark.parametrize(("moved", "step_time_s"), [(0, 1.0), (10, 0.0)])
def test_nothing_moved_or_nothing_measured_gives_no_point(moved: int, step_time_s: float) -> None:
    assert roofline_point(step(0, moved), step_time_s, roofs()) is None


def test_a_roof_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        roofline_point(step(1, 1), 1.0, roofs(bytes_per_s=0.0))


def test_a_step_takes_the_longer_of_computing_and_moving() -> None:
    assert lower_bound_seconds(COST, roofs()) == 10.0
    assert lower_bound_seconds(COST, roofs(flops_per_s=50.0)) == 20.0
    assert bound_of(COST, roofs()) is Bound.MEMORY
    assert bound_of(COST, roofs(flops_per_s=50.0)) is Bound.COMPUTE


@pytest.mark.parametrize("wanted", [1, 2, 3, 64, 65, 1000])
def test_the_first_count_from_which_something_holds_is_found(wanted: int) -> None:
    assert first_count(lambda count: count >= wanted, 1000) == wanted


def test_what_holds_for_no_count_up_to_the_largest_has_no_first() -> None:
    assert first_count(lambda count: count >= 1001, 1000) is None


def test_the_shortest_compute_bound_prompt_is_the_first_one() -> None:
    shape, device = llama(), roofs(989e12, 3.35e12)

    tokens = compute_bound_prompt_tokens(shape, device)

    assert tokens is not None
    assert bound_of(step_cost(shape, [(tokens, tokens)]), device) is Bound.COMPUTE
    assert bound_of(step_cost(shape, [(tokens - 1, tokens - 1)]), device) is Bound.MEMORY
    assert 250 < tokens < 400  # near the ridge, since each token reuses each weight once


def test_a_large_batch_turns_compute_bound_at_a_short_context_and_never_at_a_long_one() -> None:
    shape, device = llama(), roofs(989e12, 3.35e12)

    short = compute_bound_batch(shape, device, 16)

    assert short is not None
    assert bound_of(step_cost(shape, [(1, 16)] * short), device) is Bound.COMPUTE
    assert bound_of(step_cost(shape, [(1, 16)] * (short - 1)), device) is Bound.MEMORY
    assert compute_bound_batch(shape, device, 8192) is None


def test_the_batch_at_which_kv_overtakes_the_weights() -> None:
    shape = llama()

    batch = kv_overtakes_batch(shape, 8192)

    assert batch == 14  # 15.0 GB of weights read, 1.07 GB of K/V a sequence
    assert step_cost(shape, [(1, 8192)] * 13).kv_read_bytes < shape.weight_bytes


def test_what_if_puts_the_counts_together() -> None:
    answer = what_if(
        llama(),
        roofs(989e12, 3.35e12),
        Workload(batch=4, prompt_tokens=512, context_tokens=1024),
        memory_bytes=80 << 30,
    )

    assert answer.ttft_s == lower_bound_seconds(answer.prefill, answer.ceilings)
    assert answer.itl_s == lower_bound_seconds(answer.decode, answer.ceilings)
    assert answer.batch_tokens_per_s == pytest.approx(4 * answer.sequence_tokens_per_s)
    assert answer.memory_needed_bytes == 16_060_522_496 + 4 * 1024 * 131072
    assert (answer.fits, answer.prefill_bound, answer.decode_bound) == (
        True,
        Bound.COMPUTE,
        Bound.MEMORY,
    )


def test_half_the_bytes_a_kv_element_halve_the_kv_traffic() -> None:
    full = step_cost(llama(), [(1, 1000)])

    half = step_cost(with_kv_bytes(llama(), 1), [(1, 1000)])

    assert 2 * half.kv_read_bytes == full.kv_read_bytes
    assert half.weight_bytes == full.weight_bytes


@pytest.mark.parametrize("field", ["batch", "prompt_tokens", "context_tokens"])
def test_a_size_of_zero_is_refused_by_name(field: str) -> None:
    sizes = {"batch": 1, "prompt_tokens": 1, "context_tokens": 1, field: 0}

    with pytest.raises(InputError, match=field.replace("_", " ")):
        what_if(llama(), roofs(), Workload(**sizes))
