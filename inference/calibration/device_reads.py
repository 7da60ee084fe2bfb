"""How many bytes a GPU is made to read for its memory roof, and what to say when they are fewer.

The last cache of a GPU keeps lines in no strict order of use, so a part of the bytes of a repeated
read comes from it: at four times its size up to a quarter, at 16 times one in 16 at most. A short
read also loses more of its time to starting and ending: 200 MiB take an H200 44 microseconds.
"""

from __future__ import annotations

from inference.records.errors import OutOfMemoryError

MIB = 1 << 20
CACHE_MULTIPLES = (16, 32)
SMALLEST_READ_BYTES = 1024 * MIB
# Below this a read is shorter than the noise of its timing, and there is little sense in one.
LEAST_READ_BYTES = 128 * MIB
MEMORY_SHARE = 4  # a read takes at most a quarter of the memory that is free
# torch names the L2 cache; AMD's parts have another of up to 256 MiB between it and memory.
# Source: AMD CDNA 3 white paper, AMD Infinity Cache.
CACHE_BEHIND_L2_BYTES = 256 * MIB
ASSUMED_CACHE_BYTES = 64 * MIB


def device_read_sizes(cache_bytes: int | None, free_bytes: int) -> tuple[int, ...]:
    """Return the bytes to read: multiples of the last cache, within a share of the free memory.

    Raises:
        OutOfMemoryError: If there is no room for the least read that makes sense.
    """
    limit = free_bytes // MEMORY_SHARE
    if limit < LEAST_READ_BYTES:
        msg = (
            f"{free_bytes // MIB} MiB of the GPU's memory are free; measuring it needs "
            f"{MEMORY_SHARE * LEAST_READ_BYTES // MIB} MiB: end other programs on it and try again"
        )
        raise OutOfMemoryError(msg)
    cache = cache_bytes or ASSUMED_CACHE_BYTES
    wanted = (max(SMALLEST_READ_BYTES, times * cache) for times in CACHE_MULTIPLES)
    return tuple(dict.fromkeys(min(limit, size) for size in wanted))


def short_read_note(read_bytes: int, cache_bytes: int | None) -> str:
    """Return what to know of a roof whose largest read was short; empty when it was long enough."""
    cache = cache_bytes or ASSUMED_CACHE_BYTES
    needed = max(SMALLEST_READ_BYTES, CACHE_MULTIPLES[0] * cache)
    if read_bytes >= needed:
        return ""
    return (
        f"reads of {read_bytes // MIB} MiB at most, for lack of free memory, where "
        f"{needed // MIB} MiB leave next to nothing to the GPU's cache, so the rate may be too high"
    )
