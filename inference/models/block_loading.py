"""A model's weights put into blocks of 32 with a scale, module by module."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize
from torch import Tensor, nn
from transformers import PreTrainedModel

from inference.kernels.block_weights import BlockEmbedding, BlockLinear, BlockWeight
from inference.records.block_formats import BLOCK_NUMBERS, BlockFormat
from inference.records.errors import InputError

GGML_TYPES = {
    BlockFormat.Q8_0: GGMLQuantizationType.Q8_0,
    BlockFormat.Q4_0: GGMLQuantizationType.Q4_0,
    BlockFormat.Q4_1: GGMLQuantizationType.Q4_1,
}
ROWS_AT_ONCE = 4096  # of a matrix: what quantising takes beside the result
MATRIX_AXES = 2


def check_blocks(model: PreTrainedModel, model_id: str, block_format: BlockFormat) -> None:
    """Raise InputError unless all matrices of a model, loaded or not, can be kept in blocks."""
    kept = {id(module.weight) for _, module in _matrices(model)}
    for name, parameter in model.named_parameters():
        if parameter.ndim >= MATRIX_AXES and id(parameter) not in kept:
            msg = (
                f"{model_id} keeps {name} in a module of its own kind, which has no {block_format}"
            )
            msg += " here; choose float32, bfloat16 or float16"
            raise InputError(msg)
    for name, module in _matrices(model):
        width = module.weight.shape[1]
        if width % BLOCK_NUMBERS:
            msg = (
                f"{name} of {model_id} has rows of {width} numbers and {block_format} keeps blocks "
            )
            msg += f"of {BLOCK_NUMBERS}; choose float32, bfloat16 or float16"
            raise InputError(msg)


def keep_in_blocks(model: PreTrainedModel, block_format: BlockFormat) -> None:
    """Replace the matrices of a float32 model, for which ``check_blocks`` passed, by blocks.

    Matrices that modules share stay shared. One matrix at a time has both of its forms in memory.
    """
    made: dict[int, BlockWeight] = {}
    old: list[Tensor] = []  # alive until the end, so that no two have one id
    for name, module in list(_matrices(model)):
        weight = module.weight
        if id(weight) not in made:
            made[id(weight)] = quantised(weight, block_format)
            old.append(weight)
        blocks = made[id(weight)]
        if isinstance(module, nn.Linear):
            replacement: nn.Module = BlockLinear(blocks, module.bias)
        else:
            replacement = BlockEmbedding(blocks, module.padding_idx)
        model.set_submodule(name, replacement.eval())
        weight.data = torch.empty(0)


def quantised(weight: Tensor, block_format: BlockFormat) -> BlockWeight:
    """Return a matrix [out, in] in blocks; in is a multiple of 32."""
    parts = [
        torch.from_numpy(np.array(quantize(rows.numpy(), GGML_TYPES[block_format])))
        for rows in weight.detach().to(torch.float32).contiguous().split(ROWS_AT_ONCE)
    ]
    return BlockWeight.of(torch.cat(parts), block_format)


def _matrices(model: nn.Module) -> Iterator[tuple[str, nn.Linear | nn.Embedding]]:
    """Yield what is of these classes exactly: what derives from them may compute otherwise."""
    for name, module in model.named_modules():
        if type(module) is nn.Linear or type(module) is nn.Embedding:
            yield name, module
