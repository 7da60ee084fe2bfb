"""What the files of a published model hold otherwise than the library's class for it. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from inference.counting.config_sizes import whole_number
from inference.models.listed_sizes import size_of
from inference.records.model import MatrixRole, ModelShape, WeightMatrix

# Layers after the last that predict tokens further on: DeepSeek-V3 Technical Report, section 2.2.
FURTHER_LAYERS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers")


def notes_of_further_tokens(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return what is left out of layers that predict tokens beyond the next one."""
    stated = ((name, whole_number(fields.get(name))) for name in FURTHER_LAYERS)
    name, layers = next(((name, count) for name, count in stated if count), ("", 0))
    if not layers:
        return ()
    last = size_of(fields, "num_hidden_layers") or 0
    which = f"layer {last}" if layers == 1 else f"layers {last} to {last + layers - 1}"
    return (
        f"{name} is {layers}: weights of {which} (counted from 0), for predicting further tokens, "
        "are left out, since a step that chooses one token does not use them. The published files "
        "are larger by these.",
    )


def without_zero_experts(shape: ModelShape, fields: Mapping[str, object]) -> ModelShape:
    """Return the shape without weights of experts that hand their input on and have none.

    Source:
        LongCat-Flash Technical Report, section 2.1. transformers 5.24, ``LongcatFlashExperts``,
        makes room for them in ``gate_up_proj``, which the published files have not.
    """
    zero = whole_number(fields.get("zero_expert_num"))
    routed = size_of(fields, "num_experts")
    if not zero or not routed:
        return shape
    matrices = tuple(_without(matrix, routed, zero) for matrix in shape.matrices)
    more = sum(one.bytes for one in shape.matrices) - sum(one.bytes for one in matrices)
    parameters = shape.parameters
    chosen = next((one.experts_per_token for one in matrices if one.role is MatrixRole.EXPERT), 0)
    note = (
        f"{zero} of {zero + routed} experts have no weights and compute nothing. All {chosen} that "
        "a token chooses are counted as experts with weights: operations and the weights that a "
        "step reads are at most these."
    )
    return replace(
        shape,
        matrices=matrices,
        weight_bytes=shape.weight_bytes - more,
        parameters=None if parameters is None else parameters - more // shape.kv_dtype_bytes,
        uncounted=(*shape.uncounted, note),
    )


def _without(matrix: WeightMatrix, routed: int, zero: int) -> WeightMatrix:
    if matrix.role is not MatrixRole.EXPERT or matrix.experts != routed + zero:
        return matrix
    return replace(matrix, experts=routed, bytes=matrix.bytes * routed // matrix.experts)
