"""Products of 16-bit matrices in float32, tile by tile, where a processor has none of its own.

Without the instructions for it torch multiplies 16-bit matrices at a quarter of the rate of float32
(DECISIONS.md, 2026-12-01). Weights stay as they are: a tile of them is made float32, used and
dropped.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

# Source: our own choice. A tile of float32 weights that a second-level cache holds, or nearly.
TILE_BYTES = 4 << 20
FLOAT_BYTES = 4


@cache
def is_widened(dtype: torch.dtype) -> bool:
    """Return whether a CPU multiplies large matrices of this dtype faster as float32."""
    if dtype is torch.bfloat16:
        return not torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001  its only name
    if dtype is torch.float16:
        return not torch.ops.mkldnn._is_mkldnn_fp16_supported()  # noqa: SLF001  likewise
    return False


def wide_product(given: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return given times the transposed weight, plus bias, computed and kept in float32.

    Args:
        given: [..., width].
        weight: [out_width, width].
        bias: [out_width].
    """
    wide = given.to(torch.float32)
    rows = max(1, TILE_BYTES // (FLOAT_BYTES * weight.shape[1]))
    tiles = [linear(wide, tile.to(torch.float32)) for tile in weight.split(rows)]
    product = tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=-1)
    return product if bias is None else product + bias
