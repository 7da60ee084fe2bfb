"""Weights kept in blocks of 32 that share a scale, as GGUF defines them, in a model's modules.

A block holds its scale (and in Q4_1 its least number) in float16 beside 32 numbers of 8 or 4 bits;
the layouts stand in kernels_blocks.h. Activations, sums, norms, biases, keys and values are
float32. Here is what computes without the kernels: weights are widened tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from inference.kernels.wide_products import FLOAT_BYTES, TILE_BYTES
from inference.records.block_formats import BLOCK_NUMBERS, BlockFormat

# From rows of blocks [row, byte] to their numbers [row, width] in float32.
Widen = Callable[[Tensor], Tensor]
HALF_BYTES = 2


class BlockWeight(nn.Parameter):
    """The blocks of a matrix [out, byte], and how many numbers they hold.

    Attributes:
        block_format: How they are kept.
        numbers: Of all rows.
    """

    block_format: BlockFormat
    numbers: int

    @classmethod
    def of(cls, blocks: Tensor, block_format: BlockFormat) -> BlockWeight:
        """Return a parameter that is never learned.

        Args:
            blocks: uint8 [out, byte].
            block_format: Theirs.
        """
        made = cls(blocks, requires_grad=False)
        made.block_format = block_format
        made.numbers = blocks.numel() // block_format.block_bytes * BLOCK_NUMBERS
        return made


class BlockLinear(nn.Linear):
    """A linear layer whose weight is kept in blocks; computes in float32."""

    def __init__(self, weight: BlockWeight, bias: Tensor | None) -> None:
        nn.Module.__init__(self)  # Linear's own would make a weight
        self.out_features = len(weight)
        self.in_features = weight.numbers // len(weight)
        self.block_format = weight.block_format
        self.weight = weight
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def twin(self) -> BlockLinear:
        """Return another layer over the same weight, with no replaced forward."""
        weight: Any = self.weight
        return BlockLinear(weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return input [..., in] times the widened weight, plus bias."""
        return block_product(input, self, lambda rows: widened(rows, self.block_format))


class BlockEmbedding(nn.Embedding):
    """An embedding whose rows are kept in blocks."""

    def __init__(self, weight: BlockWeight, padding_idx: int | None) -> None:
        nn.Module.__init__(self)  # Embedding's own would make a weight
        self.num_embeddings = len(weight)
        self.embedding_dim = weight.numbers // len(weight)
        self.padding_idx = padding_idx
        self.max_norm, self.norm_type = None, 2.0
        self.scale_grad_by_freq = self.sparse = False
        self.block_format = weight.block_format
        self.weight = weight

    def twin(self) -> BlockEmbedding:
        """Return another embedding over the same weight, with no replaced forward."""
        weight: Any = self.weight
        return BlockEmbedding(weight, self.padding_idx)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows of ids [...], widened to [..., embedding_dim]."""
        return widened(self.weight[input], self.block_format)


# Linear layers whose forward is known: what derives from them may compute something else.
PLAIN = (nn.Linear, BlockLinear)


def weight_numbers(weight: Tensor) -> str:
    """Return what the numbers of a parameter are kept in: a dtype's name or a block format's."""
    if isinstance(weight, BlockWeight):
        return weight.block_format.value
    return str(weight.dtype).removeprefix("torch.")


def other_numbers(numbers: str) -> str:
    """Return what norms, biases, keys and values are kept in beside weights of a format."""
    return "float32" if numbers in tuple(BlockFormat) else numbers


def model_block_format(model: nn.Module) -> BlockFormat | None:
    """Return the format of the blocks in a model; None where it has none."""
    kept = (module for module in model.modules() if isinstance(module, BlockLinear))
    return next((linear.block_format for linear in kept), None)


def widened(blocks: Tensor, block_format: BlockFormat) -> Tensor:
    """Return the numbers of blocks [..., byte] in float32, [..., width]."""
    size = block_format.block_bytes
    own = blocks.detach().unflatten(-1, (-1, size))
    scales = own[..., :HALF_BYTES].contiguous().view(torch.float16).to(torch.float32)
    if block_format is BlockFormat.Q8_0:
        numbers = own[..., HALF_BYTES:].contiguous().view(torch.int8) * scales
        return numbers.flatten(-2)
    pairs = own[..., -BLOCK_NUMBERS // 2 :]
    numbers = torch.cat([pairs & 15, pairs >> 4], dim=-1).to(torch.float32)
    if block_format is BlockFormat.Q4_0:
        return ((numbers - 8) * scales).flatten(-2)
    least = own[..., HALF_BYTES : 2 * HALF_BYTES].contiguous().view(torch.float16)
    return (numbers * scales + least.to(torch.float32)).flatten(-2)


def block_product(given: Tensor, layer: BlockLinear, widen: Widen) -> Tensor:
    """Return given [..., in] times the layer's weight, plus bias, widened tile by tile."""
    rows = max(1, TILE_BYTES // (FLOAT_BYTES * layer.in_features))
    tiles = [linear(given, widen(tile)) for tile in layer.weight.detach().split(rows)]
    product = tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=-1)
    return product if layer.bias is None else product + layer.bias
