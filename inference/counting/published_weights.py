"""The bytes of weights as a model is published: what its ``quantization_config`` says. No torch.

Linear projections and experts are stored in fewer bits, each with scales for blocks or groups; the
embedding, the head, routers, norms and what the file leaves out stay in 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from inference.counting.stored_formats import ModuleFormats, StoredFormat, module_formats
from inference.records.model import MatrixRole, ModelShape, WeightMatrix

PLAIN_BITS = 16
BITS_PER_BYTE = 8
KV_NOTE = (
    "The file asks for K/V in fewer bits; they are counted in the number format that is chosen "
    "for them: float8 in What if, or --kv-dtype float8, counts them in 8 bits."
)
BITS = ("bits", "w_bit")
ROUTER = re.compile(r"(^|\.)(gate|router|wg|shared_expert_gate)$")


def with_published_weights(shape: ModelShape, quantization: object) -> ModelShape:
    """Return the shape with the bytes of its weights as published beside those of its dtype.

    Of a format that is not known the shape says so, and has no such bytes.

    Source:
        FP8 blocks: DeepSeek-V3 Technical Report, section 3.3.2. MXFP4, MXFP8: OCP Microscaling
        Formats 1.0, table 1 (an 8-bit scale for 32). NVFP4: an 8-bit scale for 16 (NVIDIA
        ModelOpt). AWQ and GPTQ: a 16-bit scale and a zero point for each group. NF4: Dettmers et
        al. 2023, QLoRA, section 3 (a 32-bit constant for 64, or 8 bits and 32 for 256 of those).
    """
    if not quantization:
        return shape
    if not isinstance(quantization, Mapping):
        what = f"is {repr(quantization)[:40]}, and no object with a quant_method"
        return replace(shape, uncounted=(*shape.uncounted, _not_counted(what)))
    formats = module_formats(quantization)
    if formats is None:
        method = quantization.get("quant_method") or quantization.get("quant_algo") or "unnamed"
        stated = [name for name in BITS if name in quantization]
        bits = "".join(f" with {name} {repr(quantization[name])[:20]}" for name in stated)
        what = f"names a format that is not known here ({str(method)[:40]!r}{bits})"
        return replace(shape, uncounted=(*shape.uncounted, _not_counted(what)))
    matrices = tuple(_published(matrix, formats) for matrix in shape.matrices)
    element = shape.kv_dtype_bytes
    plain = shape.weight_bytes - sum(one.bytes for one in shape.matrices if not one.is_tied)
    published = plain * 2 // element + sum(
        one.published_bytes or 0 for one in matrices if not one.is_tied
    )
    notes = (KV_NOTE,) if _stores_kv_smaller(quantization) else ()
    return replace(
        shape,
        matrices=matrices,
        published_weight_bytes=published,
        published_format=formats.name,
        uncounted=(*shape.uncounted, *notes),
    )


def _not_counted(what: str) -> str:
    return (
        f"quantization_config {what}: the weights are counted in the number format chosen; "
        "published, they are at most that."
    )


def _stores_kv_smaller(quantization: Mapping[str, object]) -> bool:
    return any(quantization.get(name) for name in ("kv_cache_scheme", "kv_cache_quant_algo"))


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


def _published(matrix: WeightMatrix, formats: ModuleFormats) -> WeightMatrix:
    per_copy = matrix.experts * matrix.in_features * matrix.out_features
    stored = _formats(matrix, formats)
    bits = sum(
        copies * (per_copy * PLAIN_BITS if one is None else one.stored_bits(per_copy))
        for one, copies in stored.items()
    )
    return replace(matrix, published_bytes=bits // BITS_PER_BYTE)


def _formats(matrix: WeightMatrix, formats: ModuleFormats) -> dict[StoredFormat | None, int]:
    """Return how many copies of a matrix are stored in each format, None for 16 bits."""
    if matrix.role is MatrixRole.HEAD:
        return {formats.of_head(): matrix.copies}
    is_quantised = matrix.role in (MatrixRole.LINEAR, MatrixRole.EXPERT)
    if not is_quantised or ROUTER.search(matrix.name):
        return {None: matrix.copies}
    counts: dict[StoredFormat | None, int] = {}
    for layer in matrix.layers or range(matrix.copies):
        stored = formats.of_layer(matrix.name, layer)
        counts[stored] = counts.get(stored, 0) + 1
    return counts
