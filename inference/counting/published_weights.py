"""The bytes of weights as a model is published: what its ``quantization_config`` says. No torch.

Linear projections and experts are stored in fewer bits, each with scales for blocks or groups; the
embedding, the head, routers, norms and what the file leaves out stay in 16 bits.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from inference.counting.config_sizes import whole_number
from inference.records.model import MatrixRole, ModelShape, WeightMatrix

PLAIN_BITS = 16
HALF_BYTE = 4
KNOWN_BITS = (2, 3, 4, 8)
BITS_PER_BYTE = 8
ROUTER = re.compile(r"(^|\.)(gate|router|wg|shared_expert_gate)$")
LEFT_OUT = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude_modules",
    "llm_int8_skip_modules",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """How a weight is stored.

    Attributes:
        name: What people call it.
        bits: Of one weight.
        group: Weights of one scale; None for one scale in all, which is not counted.
        scale_bits: Of a group's scale and zero point.
    """

    name: str
    bits: int
    group: int | None = None
    scale_bits: int = 0

    def stored_bits(self, weights: int) -> int:
        """Return the bits of so many weights, scales included."""
        groups = -(-weights // self.group) if self.group else 0
        return weights * self.bits + groups * self.scale_bits


FIXED_FORMATS = {
    "mxfp4": _Format(name="MXFP4", bits=4, group=32, scale_bits=8),
    "NVFP4": _Format(name="NVFP4", bits=4, group=16, scale_bits=8),
}


def with_published_weights(shape: ModelShape, quantization: object) -> ModelShape:
    """Return the shape with the bytes of its weights as published beside those of its dtype.

    Of a format that is not known the shape says so, and has no such bytes.

    Source:
        FP8 blocks: DeepSeek-V3 Technical Report, section 3.3.2. MXFP4: OCP Microscaling Formats
        1.0, table 1 (an 8-bit scale for 32). NVFP4: an 8-bit scale for 16 (NVIDIA ModelOpt). AWQ
        and GPTQ: a 16-bit scale and a zero point for each group. NF4: Dettmers et al. 2023, QLoRA,
        section 3 (a 32-bit constant for 64, or 8 bits and 32 for 256 of those).
    """
    if not isinstance(quantization, Mapping) or not quantization:
        return shape
    stored = _format(quantization)
    if stored is None:
        method = quantization.get("quant_method") or quantization.get("quant_algo") or "unnamed"
        note = (
            f"quantization_config names a format that is not known here ({str(method)[:40]!r}): "
            "the weights are counted in the number format chosen; published, they are at most that."
        )
        return replace(shape, uncounted=(*shape.uncounted, note))
    skipped = tuple(_skipped(quantization))
    matrices = tuple(_published(matrix, stored, skipped) for matrix in shape.matrices)
    element = shape.kv_dtype_bytes
    plain = shape.weight_bytes - sum(one.bytes for one in shape.matrices if not one.is_tied)
    published = plain * 2 // element + sum(
        one.published_bytes or 0 for one in matrices if not one.is_tied
    )
    return replace(
        shape, matrices=matrices, published_weight_bytes=published, published_format=stored.name
    )


def as_published(shape: ModelShape) -> ModelShape:
    """Return the shape with its weights stored as published; itself where that is not known."""
    if shape.published_weight_bytes is None:
        return shape
    return replace(
        shape,
        matrices=tuple(
            one if one.published_bytes is None else replace(one, bytes=one.published_bytes)
            for one in shape.matrices
        ),
        weight_bytes=shape.published_weight_bytes,
        idle_weight_bytes=shape.idle_weight_bytes * 2 // shape.kv_dtype_bytes,
    )


def _published(matrix: WeightMatrix, stored: _Format, skipped: tuple[str, ...]) -> WeightMatrix:
    per_copy = matrix.experts * matrix.in_features * matrix.out_features
    plain = matrix.copies * per_copy * PLAIN_BITS
    is_quantised = matrix.role in (MatrixRole.LINEAR, MatrixRole.EXPERT)
    if not is_quantised or ROUTER.search(matrix.name):
        return replace(matrix, published_bytes=plain // BITS_PER_BYTE)
    left = sum(_is_skipped(matrix.name, layer, skipped) for layer in range(matrix.copies))
    bits = left * per_copy * PLAIN_BITS + (matrix.copies - left) * stored.stored_bits(per_copy)
    return replace(matrix, published_bytes=bits // BITS_PER_BYTE)


def _is_skipped(name: str, layer: int, skipped: Iterable[str]) -> bool:
    full = f"model.layers.{layer}.{name}"
    return any(
        (one.startswith("re:") and re.match(one[3:].rstrip("$"), full) is not None)
        or fnmatch.fnmatch(full, one)
        or full == one
        or full.startswith(f"{one}.")
        or f".{one}." in f".{full}."
        for one in skipped
    )


def _skipped(quantization: Mapping[str, object]) -> list[str]:
    lists = (quantization.get(name) for name in LEFT_OUT)
    return [one for each in lists if isinstance(each, list) for one in each if _is_usable(one)]


def _is_usable(pattern: object) -> bool:
    """Return whether this names modules; a pattern that is no regular expression names none."""
    if not isinstance(pattern, str) or len(pattern) > 200:  # noqa: PLR2004  longer is no module's name
        return False
    try:
        re.compile(pattern.removeprefix("re:"))
    except re.error:
        return not pattern.startswith("re:")
    return True


def _format(quantization: Mapping[str, object]) -> _Format | None:
    method = str(quantization.get("quant_method", "")).lower()
    algorithm = str(quantization.get("quant_algo", "")).upper()
    if method in ("fp8", "fbgemm_fp8") or algorithm.startswith("FP8"):
        return _fp8(quantization)
    named = FIXED_FORMATS.get(method) or FIXED_FORMATS.get(algorithm)
    if named is not None:
        return named
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin"):
        return _grouped(method.removesuffix("_marlin").upper(), quantization)
    if method in ("compressed-tensors", "modelopt"):
        return _compressed(quantization)
    return _bitsandbytes(quantization)


def _fp8(quantization: Mapping[str, object]) -> _Format:
    block = quantization.get("weight_block_size")
    sizes = [whole_number(one) or 0 for one in block] if isinstance(block, list) else []
    group = sizes[0] * sizes[1] if len(sizes) == 2 else None  # noqa: PLR2004  rows and columns
    return _Format(name="FP8", bits=8, group=group or None, scale_bits=32)


def _grouped(name: str, quantization: Mapping[str, object]) -> _Format | None:
    bits = whole_number(quantization.get("bits", quantization.get("w_bit")))
    if bits not in KNOWN_BITS:
        return None
    group = whole_number(quantization.get("group_size", quantization.get("q_group_size")))
    is_grouped = group is not None and group > 0
    return _Format(
        name=f"{name}, {bits} bits",
        bits=bits,
        group=group if is_grouped else None,
        scale_bits=16 + bits,
    )


def _compressed(quantization: Mapping[str, object]) -> _Format | None:
    groups = quantization.get("config_groups")
    parts = groups.values() if isinstance(groups, Mapping) else ()
    weights = next((one.get("weights") for one in parts if isinstance(one, Mapping)), None)
    if not isinstance(weights, Mapping):
        return None
    bits = whole_number(weights.get("num_bits"))
    if bits not in KNOWN_BITS:
        return None
    group = whole_number(weights.get("group_size"))
    kind = str(weights.get("type", "int"))
    is_small_float = kind == "float" and bits == HALF_BYTE  # as MXFP4
    has_zero = weights.get("symmetric") is False
    return _Format(
        name=f"compressed-tensors, {kind} {bits} bits",
        bits=bits,
        group=group if group and group > 0 else None,
        scale_bits=8 if is_small_float else 16 + (bits if has_zero else 0),
    )


def _bitsandbytes(quantization: Mapping[str, object]) -> _Format | None:
    if quantization.get("load_in_4bit") is True:
        if quantization.get("bnb_4bit_use_double_quant") is True:
            return _Format(
                name="bitsandbytes, 4 bits", bits=4, group=64 * 256, scale_bits=8 * 256 + 32
            )
        return _Format(name="bitsandbytes, 4 bits", bits=4, group=64, scale_bits=32)
    if quantization.get("load_in_8bit") is True:
        return _Format(name="bitsandbytes, 8 bits", bits=8)
    return None
