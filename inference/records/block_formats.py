"""Formats that keep weights in blocks of 32 with a scale, as GGUF defines them. No torch."""

from __future__ import annotations

from enum import StrEnum

BLOCK_NUMBERS = 32
COMPUTED_IN = "float32"


class BlockFormat(StrEnum):
    """How the numbers of a block are kept; the values are those of ``--dtype``.

    Source:
        ggml's block_q8_0, block_q4_0 and block_q4_1: a float16 scale, in Q4_1 a float16 least
        number, and 32 numbers of 8 or 4 bits.
    """

    Q8_0 = "q8_0"
    Q4_0 = "q4_0"
    Q4_1 = "q4_1"

    @property
    def block_bytes(self) -> int:
        """Bytes of 32 numbers, what they share included."""
        return {"q8_0": 34, "q4_0": 18, "q4_1": 20}[self.value]

    @property
    def bits(self) -> int:
        """Bits of one number, without its share of the scale."""
        return 8 if self is BlockFormat.Q8_0 else 4


def block_format_of(dtype: str) -> BlockFormat | None:
    """Return the format of that name; None for any other number format."""
    return BlockFormat(dtype) if dtype in tuple(BlockFormat) else None
