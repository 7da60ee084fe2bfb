"""Tells a lack of memory from other errors: each device's allocator has a way of its own."""

from __future__ import annotations

import torch

# Both come as plain RuntimeErrors, from Apple's GPUs and from the CPU.
# Source: PyTorch, aten/src/ATen/mps/MPSAllocator.mm and c10/core/impl/alloc_cpu.cpp.
WORDS = ("out of memory", "allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that a device, or the machine, has too little memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in WORDS)
