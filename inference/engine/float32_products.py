"""Whether float32 products are computed in TF32, and how to compute them as float32 for a while.

torch leaves TF32 off for matrix products unless ``TORCH_ALLOW_TF32_CUBLAS_OVERRIDE`` is set, as
NVIDIA's own images do, and on for convolutions. TF32 keeps 10 bits of the mantissa, so the ids may
be others than the CPU's, and its rate is not that of float32.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch


def is_tf32_on() -> bool:
    """Return whether a CUDA device would compute float32 matrix products in TF32."""
    return _is_on(torch.backends.cuda.matmul)


@contextmanager
def exact_float32() -> Generator[bool, None, None]:
    """Compute float32 products as float32 inside, and put the settings back at the end.

    Yields:
        Whether matrix products were computed in TF32 before.
    """
    backends: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    were_on = [_is_on(backend) for backend in backends]
    for backend in backends:
        backend.allow_tf32 = False
    try:
        yield were_on[0]
    finally:
        for backend, was_on in zip(backends, were_on, strict=True):
            backend.allow_tf32 = was_on


def _is_on(backend: Any) -> bool:  # noqa: ANN401  # torch's modules of settings
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # set by torch's newer name, which refuses to be read by the older one
        return backend.fp32_precision == "tf32"
