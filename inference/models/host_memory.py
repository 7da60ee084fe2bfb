"""How much memory is free for a model on the processor: the machine's, a container's, our own."""

from __future__ import annotations

import psutil

from inference.models.memory_limit import MemoryLimit
from inference.models.process_memory import room_bytes


def free_host_bytes() -> int:
    """Return the bytes that this process can still take before some limit is reached."""
    free = psutil.virtual_memory().available
    limit = MemoryLimit()
    used = limit.used_bytes()
    if limit.total_bytes is not None and used is not None:
        free = min(free, max(0, limit.total_bytes - used))
    room = room_bytes()
    return free if room is None else min(free, room)
