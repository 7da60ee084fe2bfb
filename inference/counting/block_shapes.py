"""A shape with its weights kept in blocks of 32 with a scale, as GGUF defines them. No torch."""

from __future__ import annotations

from dataclasses import replace

from inference.records.block_formats import BLOCK_NUMBERS, BlockFormat
from inference.records.model import MatrixRole, ModelShape, WeightMatrix


def in_blocks(shape: ModelShape, block_format: BlockFormat) -> ModelShape:
    """Return the shape with its matrices in blocks; norms, biases and K/V stay as they are.

    A matrix whose rows are no multiple of a block stays as it is too.

    Args:
        shape: With weights and K/V in one dtype, of which activations then are.
        block_format: That of the blocks.
    """
    matrices = tuple(_in_blocks(matrix, block_format) for matrix in shape.matrices)
    pairs = zip(matrices, shape.matrices, strict=True)
    saved = sum(old.bytes - new.bytes for new, old in pairs if not old.is_tied)
    return replace(
        shape,
        matrices=matrices,
        weight_bytes=shape.weight_bytes - saved,
        activation_dtype_bytes=shape.kv_dtype_bytes,
    )


def _in_blocks(matrix: WeightMatrix, block_format: BlockFormat) -> WeightMatrix:
    is_table = matrix.role is MatrixRole.EMBEDDING  # whose rows are those that are gathered
    width = matrix.out_features if is_table else matrix.in_features
    if width % BLOCK_NUMBERS:
        return matrix
    numbers = matrix.copies * matrix.experts * matrix.in_features * matrix.out_features
    return replace(matrix, bytes=numbers // BLOCK_NUMBERS * block_format.block_bytes)
