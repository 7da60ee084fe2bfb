"""FLOPs and bytes of steps against independent counts and hand-worked numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from inference.counting.costs import (
    attended_pairs,
    expected_experts,
    kv_stored_bytes,
    matrix_costs,
    step_cost,
)
from inference.counting.public_configs import public_config
from inference.models.config_shapes import shape_of_config
from inference.models.shapes import model_shape
from inference.records.errors import InputError
from inference.records.model import LayerType, MatrixRole, ModelShape, WeightMatrix
from inference.records.steps import RowStep
from tests.cost_families import (
    ATTENTION_FAMILIES,
    COMPUTES_ALL_LOGITS,
    SCANNING_FAMILIES,
    family_model,
)

BATCH = 2
STEP_ENDS = (0, 9, 10, 13)  # a prefill, a decode step, and a chunk of three tokens
LINEAR_OPERATORS = ("mm", "addmm")
ATTENTION_OPERATORS = ("bmm", "baddbmm")


def counted_operators(family: str) -> list[tuple[tuple[int, int], dict[str, int]]]:
    """Return T and L of each step of a family's tiny model with torch's own count of it."""
    model = family_model(family)
    ids = torch.arange(STEP_ENDS[-1])[None].repeat(BATCH, 1) + torch.tensor([[3], [11]])
    options = {} if family in COMPUTES_ALL_LOGITS else {"logits_to_keep": 1}
    steps: list[tuple[tuple[int, int], dict[str, int]]] = []
    for start, end in pairwise(STEP_ENDS):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            output = model(ids[:, start:end], use_cache=True, **options)
        counts = counter.get_flop_counts()["Global"]
        steps.append(
            ((end - start, end), {str(op).rpartition(".")[2]: n for op, n in counts.items()})
        )
        options["cache"] = output.cache
    assert len(steps) == len(STEP_ENDS) - 1 > 1
    return steps


def total(counts: dict[str, int], operators: tuple[str, ...]) -> int:
    """Return the operations of some operators."""
    return sum(counts.get(operator, 0) for operator in operators)


def llama(**changes: object) -> ModelShape:
    """Return Llama-3.1-8B's shape in bfloat16, with changes."""
    return replace(shape_of_config(public_config("Llama-3.1-8B"), "bfloat16"), **changes)


@pytest.mark.golden
@pytest.mark.parametrize("family", ATTENTION_FAMILIES)
def test_flops_are_those_of_torchs_own_counter(family: str) -> None:
    """The exception: latent attention, where transformers expands the whole cache every step."""
    shape = model_shape(family_model(family))

    for size, counts in counted_operators(family):
        cost = step_cost(shape, [size] * BATCH, attention="dense")

        assert cost.linear_flops + cost.expansion_flops == total(counts, LINEAR_OPERATORS)
        assert cost.attention_flops == total(counts, ATTENTION_OPERATORS)


@pytest.mark.golden
@pytest.mark.parametrize("family", SCANNING_FAMILIES)
def test_linear_flops_of_recurrent_families_are_those_of_torchs_own_counter(family: str) -> None:
    """Their scans are products as well, of no weight matrix; ``uncounted`` says so."""
    shape = model_shape(family_model(family))

    for (query, context), counts in counted_operators(family):
        logit_rows = BATCH * query if family in COMPUTES_ALL_LOGITS else BATCH
        cost = step_cost(shape, [(query, context)] * BATCH, logit_rows=logit_rows)

        assert cost.linear_flops == total(counts, LINEAR_OPERATORS)
        assert shape.uncounted


@pytest.mark.golden
def test_a_70b_model_on_the_meta_device_counts_as_torch_does() -> None:
    shape = shape_of_config(public_config("Llama-3.1-70B"), "bfloat16")
    head = 8192 * 128256
    layers = shape.weight_bytes // 2 - 2 * head - (2 * 80 + 1) * 8192

    cost = step_cost(shape, [(512, 512)], attention="dense")

    assert cost.linear_flops == 2 * (512 * layers + head)
    assert cost.attention_flops == 4 * 80 * 64 * 128 * 512 * 512


@pytest.mark.golden
@pytest.mark.parametrize(
    ("rows", "expected"), [(128, 124.1), (8192, 2730.7)], ids=["128 rows", "8192 rows"]
)
def test_intensity_of_a_matrix_product(rows: int, expected: float) -> None:
    square = WeightMatrix(
        name="square",
        in_features=8192,
        out_features=8192,
        copies=1,
        bytes=2 * 8192 * 8192,
        role=MatrixRole.LINEAR,
    )

    [cost] = matrix_costs(replace(llama(), matrices=(square,)), rows, 1)

    assert cost.flops_per_byte == pytest.approx(expected, abs=0.05)


@pytest.mark.golden
def test_a_decode_step_of_llama_by_hand() -> None:
    cost = step_cost(llama(), [(1, 1024)] * 8)

    layer = 4096 * (4096 + 1024 + 1024 + 4096) + 3 * 4096 * 14336
    head = 4096 * 128256
    norms = (2 * 32 + 1) * 4096
    assert cost.linear_flops == 2 * 8 * (32 * layer + head)
    assert cost.attention_flops == 8 * 32 * 2 * 32 * (128 + 128) * 1024
    assert cost.weight_bytes == 2 * (32 * layer + head + norms + 8 * 4096)
    assert cost.kv_read_bytes == 8 * 1024 * 131072
    assert cost.kv_write_bytes == 8 * 131072
    assert cost.flops_per_byte == cost.flops / cost.bytes_moved


def test_the_head_is_counted_for_one_position_a_sequence_unless_told_otherwise() -> None:
    head = 2 * 4096 * 128256

    one = step_cost(llama(), [(512, 512)])
    every = step_cost(llama(), [(512, 512)], logit_rows=512)
    none = step_cost(llama(), [(512, 512)], logit_rows=0)

    assert every.linear_flops - one.linear_flops == 511 * head
    assert one.linear_flops - none.linear_flops == head
    assert one.weight_bytes - none.weight_bytes == head  # 2 bytes a weight, as 2 FLOPs a weight


def test_a_tied_table_is_read_once_as_the_head_and_its_rows_gathered() -> None:
    shape = shape_of_config(public_config("Qwen2.5-0.5B"), "bfloat16")

    cost = step_cost(shape, [(3, 3)])

    assert cost.weight_bytes == shape.weight_bytes + 3 * 896 * 2


def test_no_more_rows_are_gathered_than_the_table_has() -> None:
    shape = shape_of_config(public_config("GPT-2"), "float32")

    position = next(cost for cost in matrix_costs(shape, 5000, 1) if cost.matrix.name == "wpe")

    assert position.weight_bytes == 1024 * 768 * 4
    assert position.flops == 0
    assert position.reuse is None


def test_chunked_prefill_adds_up_to_one_prefill_but_reads_the_weights_each_time() -> None:
    whole = step_cost(llama(), [(300, 300)], logit_rows=0)
    chunks = [step_cost(llama(), [(100, end)], logit_rows=0) for end in (100, 200, 300)]

    assert sum(chunk.linear_flops for chunk in chunks) == whole.linear_flops
    assert sum(chunk.attention_flops for chunk in chunks) == whole.attention_flops
    assert sum(chunk.kv_write_bytes for chunk in chunks) == whole.kv_write_bytes
    assert sum(chunk.weight_bytes for chunk in chunks) > 2.9 * whole.weight_bytes


@pytest.mark.parametrize("window", [None, 1, 3, 7, 50])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["sliding", "chunked"])
@pytest.mark.parametrize(("query", "context"), [(1, 1), (5, 5), (1, 9), (4, 11), (20, 20)])
def test_allowed_pairs_are_those_of_a_mask(
    query: int, context: int, window: int | None, *, is_chunked: bool
) -> None:
    def is_allowed(position: int, key: int) -> bool:
        if window is None:
            return key <= position
        near = position // window == key // window if is_chunked else position - key < window
        return key <= position and near

    mask = [
        is_allowed(position, key)
        for position in range(context - query, context)
        for key in range(context)
    ]

    assert attended_pairs(query, context, window, is_chunked=is_chunked) == sum(mask)


def test_a_windowed_layer_reads_its_window_and_the_full_ones_everything() -> None:
    shape = shape_of_config(public_config("Gemma-2-9B"), "bfloat16")
    row = 344064 // 42

    cost = step_cost(shape, [(1, 8000)])
    chunk = step_cost(shape, [(1000, 8000)])

    assert cost.kv_read_bytes == 21 * row * (8000 + 4096)
    assert chunk.kv_read_bytes == 21 * row * (8000 + 4095 + 1000)
    assert cost.kv_write_bytes == 344064
    assert kv_stored_bytes(shape, 8000) == 21 * row * (8000 + 4096)


def test_a_chunked_layer_reads_from_its_chunks_start() -> None:
    kinds = (LayerType.CHUNKED,) * 32
    shape = llama(layer_types=kinds, windows_per_layer=(8,) * 32)

    assert step_cost(shape, [(1, 9)]).kv_read_bytes == 131072
    assert step_cost(shape, [(1, 16)]).kv_read_bytes == 8 * 131072
    assert step_cost(shape, [(2, 9)]).kv_read_bytes == 9 * 131072


def test_one_token_reads_the_experts_it_chose_and_many_read_nearly_all() -> None:
    shape = shape_of_config(public_config("Mixtral-8x7B"), "bfloat16")
    experts = sum(one.bytes for one in shape.matrices if one.role is MatrixRole.EXPERT)
    others = step_cost(shape, [(1, 1)]).weight_bytes - experts * 2 // 8

    many = step_cost(shape, [(64, 64)])

    assert expected_experts(8, 2, 1) == pytest.approx(2)
    assert expected_experts(8, 2, 2) == pytest.approx(3.5)
    assert expected_experts(8, 2, 64) == pytest.approx(8, abs=1e-6)
    assert many.weight_bytes == pytest.approx(others + experts + 63 * 4096 * 2, rel=1e-6)
    assert others < 0.05 * experts


def test_a_matrix_line_has_the_numbers_of_the_step() -> None:
    down = next(
        cost for cost in matrix_costs(llama(), 128, 1) if cost.matrix.name == "mlp.down_proj"
    )

    assert down.tokens == 128
    assert down.flops == 2 * 128 * 14336 * 4096 * 32
    assert down.weight_bytes == 2 * 14336 * 4096 * 32
    assert down.activation_bytes == 2 * 128 * (14336 + 4096) * 32
    assert down.reuse == 128
    moved = 2 * (128 * 14336 + 14336 * 4096 + 128 * 4096)
    assert down.flops_per_byte == pytest.approx(2 * 128 * 14336 * 4096 / moved)


def test_an_experts_weights_are_reused_less_than_the_tokens_suggest() -> None:
    shape = shape_of_config(public_config("Qwen3-30B-A3B"), "bfloat16")

    expert = next(one for one in matrix_costs(shape, 16, 1) if one.matrix.role is MatrixRole.EXPERT)

    assert expert.tokens == 16 * 8
    assert expert.reuse == pytest.approx(128 / expected_experts(128, 8, 16))
    assert expert.flops == 2 * 16 * 8 * expert.matrix.in_features * expert.matrix.out_features * 48


def test_rows_may_be_those_of_a_recorded_step() -> None:
    row = RowStep(
        request_id="a",
        slot=0,
        query_tokens=3,
        context_tokens=7,
        token_id=None,
        logprob=None,
        finish=None,
    )

    assert step_cost(llama(), [row]) == step_cost(llama(), [(3, 7)])


def test_a_shape_without_layer_detail_counts_the_same_from_its_config_fields() -> None:
    bare = llama(kv_row_bytes_per_layer=(), pair_flops_per_layer=(), windows_per_layer=())

    assert step_cost(bare, [(5, 90), (1, 12)]) == step_cost(llama(), [(5, 90), (1, 12)])


@pytest.mark.parametrize("rows", [[], [(0, 4)], [(5, 4)], [(-1, 4)]])
def test_an_impossible_step_is_refused_in_a_sentence(rows: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match=r"at least one|feed"):
        step_cost(llama(), rows)


def test_a_shape_without_matrices_is_refused_instead_of_counted_as_nothing() -> None:
    with pytest.raises(InputError, match="no weight matrices"):
        step_cost(llama(matrices=()), [(1, 1)])
