"""Attention weights binned by maximum, so that a bright cell stays bright. No torch."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[Any]  # float16 or float32


def coarser(weights: Weights, axis: int, size: int) -> Weights:
    """Return the largest of each ``size`` neighbours along an axis; NaN where one of them is."""
    if size == 1:
        return weights
    missing = -weights.shape[axis] % size
    padding = [(0, missing if one == axis else 0) for one in range(weights.ndim)]
    padded = np.pad(weights, padding, constant_values=-inf) if missing else weights
    shape = padded.shape
    split = (*shape[:axis], shape[axis] // size, size, *shape[axis + 1 :])
    return padded.reshape(split).max(axis=axis + 1)
