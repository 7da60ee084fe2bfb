"""How far two computations of the same may lie apart, by the dtype they compute in."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Tolerance(NamedTuple):
    """What rounding explains in one dtype.

    Attributes:
        logits: Norm of the difference over norm of the logits.
        weights: Difference of two attention weights, which lie between 0 and 1.
    """

    logits: float
    weights: float


# Source: our own measurements with python -m inference check, two AVX2 cores, 2026-11-30. Logits of
# the default model: float32 1.6e-6, bfloat16 1.9e-2; attention weights 7e-7 and 1e-2. 28 families
# of tiny models in float64: 8.4e-7 where parts of a family compute in float32, else 2e-15; weights,
# which are kept in float32, 6e-7. float16 has three bits more than bfloat16. Depth adds rounding.
TOLERANCES = {
    torch.float64: Tolerance(logits=1e-5, weights=1e-5),
    torch.float32: Tolerance(logits=3e-5, weights=3e-5),
    torch.float16: Tolerance(logits=1e-2, weights=1e-2),
    torch.bfloat16: Tolerance(logits=5e-2, weights=5e-2),
}
