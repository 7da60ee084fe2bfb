"""What the scores of all tokens come to, in one pass of a kernel: totals and the highest few.

Used whatever model runs, also one without kernels, since no token depends on it. ``scores_library``
compiles and checks, which takes seconds the first time: a model is not ready before it was called.
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch
from torch import Tensor

from inference.kernels.build import kernel_library
from inference.kernels.unavailable import UnavailableError

# Source: STYLE.md (d) 2, the tolerance of float32; here of each number, at least 1 being its unit.
TOLERANCE = 1e-5
# Less than a vector, a part of one, a block and more, and as many as a vocabulary has.
CHECKED_WIDTHS = (5, 97, 300, 49_152)
CHECKED_BEST = 5


@cache
def scores_library() -> ctypes.CDLL | None:
    """Return the library if its description of scores is torch's; None where it is not used."""
    return None if description_obstacle() else kernel_library()


@cache
def description_obstacle() -> str:
    """Return why scores are described by torch's operations; empty when the kernel does it."""
    try:
        library = kernel_library()
    except UnavailableError as error:
        return str(error)
    return disagreement(library)


def describe_scores(
    library: ctypes.CDLL, scores: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return totals [row, 2], the highest scores [row, count], best first, and where they are.

    Args:
        library: The kernels.
        scores: [row, width], float32 on the CPU.
        count: At most the width.

    Returns:
        Totals are the logarithm of the sum of exponentials and the entropy in nats. Of equal scores
        the first come first.
    """
    scores = scores.contiguous()
    rows, width = scores.shape
    totals, best = torch.empty((rows, 2)), torch.empty((rows, count))
    ids = torch.empty((rows, count), dtype=torch.int64)
    library.describe(
        scores.data_ptr(), rows, width, count, totals.data_ptr(), best.data_ptr(), ids.data_ptr()
    )
    return totals, best, ids


def disagreement(library: ctypes.CDLL) -> str:
    """Return how the kernel's description of a few scores differs from torch's; empty if not."""
    for width in CHECKED_WIDTHS:
        scores = torch.randn((3, width), generator=torch.Generator().manual_seed(width)) * 6
        scores[1, ::3] = -torch.inf  # tokens that are ruled out
        scores[2, width // 2 :] = 20.0  # equal ones
        totals, best, ids = describe_scores(library, scores, CHECKED_BEST)
        exact = scores.double()  # torch's own float32 entropy is off by 1e-5
        entropies = torch.special.entr(exact.softmax(dim=-1)).sum(dim=-1)
        expected = torch.stack([exact.logsumexp(dim=-1), entropies], dim=-1)
        error = float(((totals - expected).abs() / expected.abs().clamp(min=1.0)).max())
        if not error <= TOLERANCE:
            return f"descriptions of {width} scores differ from torch's by {error:.1e}"
        values, places = scores.sort(dim=-1, descending=True, stable=True)
        is_same = torch.equal(ids, places[:, :CHECKED_BEST])
        if not (is_same and torch.equal(best, values[:, :CHECKED_BEST])):
            return f"the highest of {width} scores are not those that torch finds"
    return ""
