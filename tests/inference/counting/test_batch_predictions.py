"""Where the benefit of a batch ends, against sums worked by hand."""

from __future__ import annotations

import pytest

from inference.counting.batch_predictions import (
    batch_limits,
    is_linear_compute,
    linear_compute_batch,
    predict_batches,
)
from inference.counting.costs import step_cost
from inference.models.shapes import model_shape
from inference.records.costs import Ceilings, Source
from inference.records.model import ModelShape
from inference.records.rooflines import Bound
from tests.families import tiny_model


@pytest.fixture(scope="module")
def shape() -> ModelShape:
    return model_shape(tiny_model("llama"))


def roofs(ridge: float) -> Ceilings:
    return Ceilings(flops_per_s=ridge * 1e9, bytes_per_s=1e9, source=Source.MEASURED, method="")


@pytest.mark.golden
def test_a_memory_bound_step_takes_the_time_of_its_weights_and_every_rows_own_cache(
    shape: ModelShape,
) -> None:
    one, four = predict_batches(shape, roofs(1e6), [1, 4], [50])

    row_bytes = one.cost.kv_read_bytes + one.cost.kv_write_bytes
    assert four.cost.kv_read_bytes + four.cost.kv_write_bytes == 4 * row_bytes
    assert one.step_s == (one.cost.weight_bytes + row_bytes) / 1e9
    assert four.step_s == pytest.approx((four.cost.weight_bytes + 4 * row_bytes) / 1e9, rel=1e-12)
    assert (four.bound, four.batch_tokens_per_s) == (Bound.MEMORY, 4 / four.step_s)


@pytest.mark.parametrize("ridge", [0.5, 2.0, 7.3, 40.0])
def test_linear_work_turns_compute_bound_at_the_first_batch_right_of_the_ridge(
    shape: ModelShape, ridge: float
) -> None:
    turn = linear_compute_batch(shape, roofs(ridge))

    assert turn is not None
    assert is_linear_compute(shape, roofs(ridge), turn)
    assert turn == 1 or not is_linear_compute(shape, roofs(ridge), turn - 1)


def test_no_batch_turns_linear_work_compute_bound_under_an_endless_roof(shape: ModelShape) -> None:
    assert linear_compute_batch(shape, roofs(1e9)) is None


def test_limits_say_where_cache_overtakes_weights_and_how_many_rows_fit(shape: ModelShape) -> None:
    memory = shape.weight_bytes + 7 * 50 * (shape.kv_bytes_per_token or 0)

    limits = batch_limits(shape, roofs(2.0), 50, memory)

    turn = limits.kv_overtakes_batch
    assert turn is not None
    cost = step_cost(shape, [(1, 50)] * turn)
    fewer = step_cost(shape, [(1, 50)] * (turn - 1))
    assert cost.kv_read_bytes >= cost.weight_bytes
    assert fewer.kv_read_bytes < fewer.weight_bytes
    assert limits.most_rows == 7
    assert batch_limits(shape, roofs(2.0), 50).most_rows is None
