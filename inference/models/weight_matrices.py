"""The weight matrices of a model, collected by walking its modules.

A walk over linear modules alone misses most of a mixture of experts: transformers 5 packs a layer's
experts into three-dimensional parameters, and its routers hold a bare ``weight``. Both are
included here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from inference.kernels.block_weights import BlockWeight
from inference.records.model import MatrixRole, WeightMatrix

EXPERTS_PER_TOKEN_FIELDS = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "top_k_experts",
)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LAYER_NUMBER = re.compile(r"^(?:\w+\.)*?\w+\.\d+\.")
EXPERT_NUMBER = re.compile(r"experts\.\d+\.")
ELEMENTWISE = ("bias", "A_log", "scale")  # added or multiplied element by element
PACKED_AXES = 3  # [experts, out, in], or [experts, in, out] where the module is transposed
MATRIX_AXES = 2


def weight_matrices(
    model: PreTrainedModel, decoder: nn.Module, config: PreTrainedConfig
) -> tuple[WeightMatrix, ...]:
    """Return the matrices of the text decoder and the head, equal ones of all layers as one."""
    chosen = experts_per_token(config)
    matrices = [
        matrix
        for name, module in decoder.named_modules()
        for matrix in _of_module(name, module, chosen)
    ]
    return (*_merged(matrices), *_head(model))


def experts_per_token(config: PreTrainedConfig) -> int | None:
    """Return how many experts of a layer one token passes through; None outside a mixture."""
    mlp = getattr(config, "ffn_config", None)  # where DBRX states it
    stated = (
        getattr(part, field, None) for part in (config, mlp) for field in EXPERTS_PER_TOKEN_FIELDS
    )
    # Some state one number for each layer; layers of one model seldom differ in it.
    values = (one[0] if isinstance(one, list) and one else one for one in stated)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def parameter_bytes(parameters: Iterable[nn.Parameter]) -> int:
    """Return the bytes of parameters, those shared between modules once."""
    unique = {id(parameter): parameter for parameter in parameters}
    return sum(one.numel() * one.element_size() for one in unique.values())


def parameter_count(parameters: Iterable[nn.Parameter]) -> int:
    """Return how many numbers parameters hold, those shared between modules once."""
    unique = {id(parameter): parameter for parameter in parameters}
    return sum(
        one.numbers if isinstance(one, BlockWeight) else one.numel() for one in unique.values()
    )


def uncounted_parameters(decoder: nn.Module, config: PreTrainedConfig) -> tuple[str, ...]:
    """Return the names of parameters with several axes that no matrix of the walk stands for."""
    chosen = experts_per_token(config)
    return tuple(
        dict.fromkeys(
            _without_numbers(f"{name}.{parameter_name}")
            for name, module in decoder.named_modules()
            if not isinstance(module, (nn.Linear, Conv1D, nn.Embedding, *CONVOLUTIONS))
            for parameter_name, parameter in module.named_parameters(recurse=False)
            if parameter.ndim >= MATRIX_AXES
            and not parameter_name.endswith(ELEMENTWISE)
            and not _is_router(parameter_name, parameter)
            and not _is_packed(parameter, chosen)
            and not _stacked_experts(module, parameter)
        )
    )


def _of_module(name: str, module: nn.Module, chosen: int | None) -> Iterator[WeightMatrix]:
    if isinstance(module, nn.Linear):
        yield _projection(name, module.weight, (module.in_features, module.out_features), chosen)
    elif isinstance(module, Conv1D):
        yield _projection(name, module.weight, (module.nx, module.nf), chosen)
    elif isinstance(module, nn.Embedding):
        sizes = (module.num_embeddings, module.embedding_dim)
        yield _matrix(name, module.weight, sizes, MatrixRole.EMBEDDING)
    elif not isinstance(module, CONVOLUTIONS):
        yield from _of_bare_parameters(name, module, chosen)


def _of_bare_parameters(name: str, module: nn.Module, chosen: int | None) -> Iterator[WeightMatrix]:
    for parameter_name, parameter in module.named_parameters(recurse=False):
        if _is_router(parameter_name, parameter):
            sizes = (parameter.shape[1], parameter.shape[0])
            yield _matrix(name, parameter, sizes, MatrixRole.LINEAR)
        elif _is_packed(parameter, chosen):
            full_name = name if parameter_name == "weight" else f"{name}.{parameter_name}"
            d_in, d_out = parameter.shape[2], parameter.shape[1]
            if getattr(module, "is_transposed", False):
                d_in, d_out = d_out, d_in
            packed = _matrix(full_name, parameter, (d_in, d_out), MatrixRole.EXPERT)
            yield replace(packed, experts=parameter.shape[0], experts_per_token=chosen or 1)
        elif experts := _stacked_experts(module, parameter):
            sizes = (parameter.shape[1], parameter.shape[0] // experts)
            stacked = _matrix(f"{name}.{parameter_name}", parameter, sizes, MatrixRole.EXPERT)
            yield replace(stacked, experts=experts, experts_per_token=chosen or experts)


def _is_router(parameter_name: str, parameter: nn.Parameter) -> bool:
    return parameter_name == "weight" and parameter.ndim == MATRIX_AXES


def _is_packed(parameter: nn.Parameter, chosen: int | None) -> bool:
    return chosen is not None and parameter.ndim == PACKED_AXES


def _stacked_experts(module: nn.Module, parameter: nn.Parameter) -> int:
    """Return how many experts' rows stand one below the other in a matrix; 0 where none do.

    Source:
        transformers 5.24, ``DbrxExpertGLU``.
    """
    experts: object = getattr(module, "moe_num_experts", None)
    width: object = getattr(module, "ffn_hidden_size", None)
    if not isinstance(experts, int) or not isinstance(width, int):
        return 0
    is_stack = parameter.ndim == MATRIX_AXES and parameter.shape[0] == experts * width
    return experts if is_stack else 0


def _projection(
    name: str, weight: Tensor, sizes: tuple[int, int], chosen: int | None
) -> WeightMatrix:
    is_expert = EXPERT_NUMBER.search(name) is not None and chosen is not None
    matrix = _matrix(name, weight, sizes, MatrixRole.EXPERT if is_expert else MatrixRole.LINEAR)
    is_expansion = matrix.name.endswith("kv_b_proj")
    return replace(
        matrix, experts_per_token=chosen or 1 if is_expert else 1, is_expansion=is_expansion
    )


def _matrix(name: str, weight: Tensor, sizes: tuple[int, int], role: MatrixRole) -> WeightMatrix:
    return WeightMatrix(
        name=name,
        in_features=sizes[0],
        out_features=sizes[1],
        copies=1,
        bytes=weight.numel() * weight.element_size(),
        role=role,
    )


def _without_numbers(name: str) -> str:
    return EXPERT_NUMBER.sub("experts.", LAYER_NUMBER.sub("", name))


def _layer_of(name: str) -> str:
    match = LAYER_NUMBER.match(name)
    return match.group() if match else ""


def _merged(matrices: list[WeightMatrix]) -> Iterator[WeightMatrix]:
    """Yield one matrix for all that have the same name and sizes, in order of first use."""
    groups: dict[WeightMatrix, list[WeightMatrix]] = {}
    for matrix in matrices:
        groups.setdefault(replace(matrix, name=_without_numbers(matrix.name)), []).append(matrix)
    for kind, members in groups.items():
        per_layer = Counter(_layer_of(member.name) for member in members)
        copies = len(per_layer) if kind.role is MatrixRole.EXPERT else len(members)
        yield replace(
            kind,
            copies=copies,
            layers=numbered_layers([_number_of(one) for one in per_layer], copies),
            experts=kind.experts * max(per_layer.values()) if kind.role is MatrixRole.EXPERT else 1,
            bytes=sum(member.bytes for member in members),
        )


def numbered_layers(numbers: Sequence[int], copies: int) -> tuple[int, ...]:
    """Return the numbers of the layers that have a matrix; none where they are the first ones."""
    is_usual = len(numbers) != copies or list(numbers) == list(range(copies))
    return () if is_usual else tuple(numbers)


def _number_of(layer: str) -> int:
    digits = re.findall(r"\d+", layer)
    return int(digits[-1]) if digits else 0


def _head(model: PreTrainedModel) -> Iterator[WeightMatrix]:
    head = model.get_output_embeddings()
    if isinstance(head, nn.Linear):
        matrix = _matrix(
            "lm_head", head.weight, (head.in_features, head.out_features), MatrixRole.HEAD
        )
        yield replace(matrix, is_tied=is_head_tied(model))


def is_head_tied(model: PreTrainedModel) -> bool:
    """Return whether the output head is the token embedding itself."""
    head = model.get_output_embeddings()
    return isinstance(head, nn.Linear) and head.weight is model.get_input_embeddings().weight
