"""Bytes of weights in blocks, counted from a shape and from what is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.counting.block_shapes import in_blocks
from inference.counting.costs import matrix_costs, step_cost
from inference.counting.public_shapes import public_shape
from inference.counting.what_if import with_kv_bytes
from inference.models.loading import load_model
from inference.records.block_formats import BlockFormat
from inference.records.model import MatrixRole


@pytest.mark.parametrize("block_format", list(BlockFormat))
def test_a_shape_in_blocks_is_that_of_a_model_in_blocks(
    tiny_model_folder: Path, block_format: BlockFormat
) -> None:
    folder = str(tiny_model_folder)
    plain, kept = (
        load_model(folder, dtype=dtype, device="cpu", on_stage=lambda _stage: None).shape
        for dtype in ("float32", block_format)
    )

    assert in_blocks(plain, block_format) == kept


def test_llama_in_4_bits_by_hand() -> None:
    """8.03 billion numbers, all but 266,240 of norms in blocks of 18 bytes for 32."""
    shape = in_blocks(public_shape("Llama-3.1-8B", "bfloat16"), BlockFormat.Q4_0)

    assert shape.weight_bytes == (8_030_261_248 - 266_240) // 32 * 18 + 266_240 * 2
    assert shape.kv_bytes_per_token == 131_072


def test_activations_stay_those_of_the_dtype_whatever_the_kv_is() -> None:
    plain = public_shape("Llama-3.1-8B", "bfloat16")

    blocks = with_kv_bytes(in_blocks(plain, BlockFormat.Q8_0), 1)

    before, after = matrix_costs(plain, 5, 1), matrix_costs(blocks, 5, 1)
    assert [one.activation_bytes for one in after] == [one.activation_bytes for one in before]


def test_rows_that_are_no_multiple_of_a_block_stay_as_they_are() -> None:
    plain = public_shape("Llama-3.1-8B", "bfloat16")
    odd = tuple(
        replace(one, in_features=one.in_features + 1) if one.role is MatrixRole.LINEAR else one
        for one in plain.matrices
    )

    blocks = in_blocks(replace(plain, matrices=odd), BlockFormat.Q8_0)

    linear = [one for one in blocks.matrices if one.role is MatrixRole.LINEAR]
    assert linear == [one for one in odd if one.role is MatrixRole.LINEAR]
    assert step_cost(blocks, [(1, 1)]).weight_bytes < step_cost(plain, [(1, 1)]).weight_bytes
