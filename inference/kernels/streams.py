"""A read of memory as the decode kernels read weights: what they can reach with nothing to compute.

Used where a device's memory roof is measured, beside the library's own reads.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from inference.kernels.abi import CHUNK_BYTES
from inference.kernels.build import kernel_library
from inference.kernels.unavailable import UnavailableError

FLOAT_BYTES = 4
CHUNK_FLOATS = CHUNK_BYTES // FLOAT_BYTES
CHECKED_CHUNKS = 5
# Source: STYLE.md (d) 2, the tolerance of float32.
TOLERANCE = 1e-5


def stream_library(device: torch.device) -> ctypes.CDLL | None:
    """Return the library if its read of memory sums up rightly here; None where it is not used."""
    if device.type != "cpu":
        return None
    try:
        library = kernel_library()
    except UnavailableError:
        return None
    return library if _is_right(library) else None


def streamed_bytes(count: int) -> int:
    """Return how many of a number of bytes a read takes: the whole chunks."""
    return count // CHUNK_BYTES * CHUNK_BYTES


def read_streams(library: ctypes.CDLL, data: Tensor) -> float:
    """Return the sum of the whole chunks of data, read by every thread of the pool.

    Args:
        library: The kernels.
        data: float32 on the CPU, contiguous, of any shape.
    """
    return library.read_streams(data.data_ptr(), data.numel() // CHUNK_FLOATS)


def _is_right(library: ctypes.CDLL) -> bool:
    """Tell whether the sum of a few chunks is torch's; a read that leaves some out is no read."""
    generator = torch.Generator().manual_seed(CHECKED_CHUNKS)
    data = torch.rand(CHECKED_CHUNKS * CHUNK_FLOATS + 1, generator=generator)
    expected = float(data[:-1].double().sum())
    return abs(read_streams(library, data) - expected) <= TOLERANCE * expected
