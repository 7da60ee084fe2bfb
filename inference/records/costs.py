"""What a step must compute and move, and how fast a device can."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inference.records.model import WeightMatrix


class Source(StrEnum):
    """Where a figure comes from."""

    MEASURED = "measured"
    COUNTED = "counted"
    DATASHEET = "datasheet"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """The least one step must compute and move, counted from the model's shape.

    Attributes:
        linear_flops: 2·T·d_in·d_out over all weight matrices used.
        attention_flops: Both products of attention: queries with keys, weights with values.
        weight_bytes: Read once for the whole batch; gathered embedding rows, experts expected.
        expansion_flops: What transformers spends on top with latent attention, where every step
            turns the whole cache into keys and values again; not in ``linear_flops``.
    """

    linear_flops: int
    attention_flops: int
    weight_bytes: int
    kv_read_bytes: int
    kv_write_bytes: int
    expansion_flops: int = 0

    @property
    def flops(self) -> int:
        """Linear and attention operations together."""
        return self.linear_flops + self.attention_flops

    @property
    def bytes_moved(self) -> int:
        """Weights and K/V together."""
        return self.weight_bytes + self.kv_read_bytes + self.kv_write_bytes

    @property
    def flops_per_byte(self) -> float:
        """Arithmetic intensity of the whole step."""
        return self.flops / self.bytes_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCost:
    """What one weight matrix does in one step, all its copies together.

    Attributes:
        tokens: Rows of X that pass through one copy (T); for a mixture the tokens routed, all
            experts together; for the head the positions whose logits are computed.
        flops: 2 x tokens x d_in x d_out x copies.
        weight_bytes: Bytes read of it; of a mixture the experts expected to be used.
        activation_bytes: X read and the product written, all copies.
        reuse: Rows that use each weight for one read of it; None where nothing is multiplied.
    """

    matrix: WeightMatrix
    tokens: int
    flops: int
    weight_bytes: int
    activation_bytes: int
    reuse: float | None

    @property
    def flops_per_byte(self) -> float | None:
        """Arithmetic intensity of the product with its activations; None when nothing moves."""
        moved = self.weight_bytes + self.activation_bytes
        return self.flops / moved if moved else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """How fast a device can go: its two roofs, and where they come from."""

    flops_per_s: float
    bytes_per_s: float
    source: Source
    method: str

    @property
    def ridge_flops_per_byte(self) -> float:
        """Intensity at which the two roofs meet."""
        return self.flops_per_s / self.bytes_per_s
