"""What a step must compute and move at least, counted from a ``ModelShape``: FLOPs and bytes.

T is the tokens fed in a step, L the tokens a sequence attends to, those fed included. Linear work
goes with T; attention goes with T and L. Nothing here is timed. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from inference.records.costs import MatrixCost, StepCost
from inference.records.errors import InputError
from inference.records.model import LayerType, MatrixRole, ModelShape, WeightMatrix

FLOPS_PER_MULTIPLY_ADD = 2

Attention = Literal["causal", "dense"]


class FedRow(Protocol):
    """One sequence of a step: anything that says how many tokens were fed and are attended to."""

    @property
    def query_tokens(self) -> int:
        """Tokens fed (T)."""
        ...

    @property
    def context_tokens(self) -> int:
        """Tokens attended to, those fed included (L)."""
        ...


Rows = Sequence[tuple[int, int]] | Sequence[FedRow]


class _Layer(NamedTuple):
    """What the attention of a layer costs.

    Attributes:
        window: Tokens that a query may read, itself included; None for all.
        row_bytes: K/V of one token.
        pair_flops: Of one query and one key.
    """

    window: int | None
    is_chunked: bool
    row_bytes: int
    pair_flops: int


def step_cost(
    shape: ModelShape,
    rows: Rows,
    *,
    attention: Attention = "causal",
    logit_rows: int | None = None,
) -> StepCost:
    """Return the least that one step must do and move.

    Weights are read once for the whole batch; each sequence reads its own K/V and stores new rows.

    Args:
        shape: The model's sizes.
        rows: One per sequence: (tokens fed, tokens attended to), or a ``RowStep``.
        attention: ``causal`` counts the allowed query-key pairs, ``dense`` all that an eager kernel
            multiplies.
        logit_rows: Positions whose logits are computed; one a sequence by default.

    Raises:
        InputError: If a row is not 0 < T <= L, or the shape lists no matrices.

    Source:
        Two FLOPs per multiply-add: Kaplan et al. 2020, Scaling Laws for Neural Language Models,
        section 2.1. Query-key pairs are summed position by position in ``attended_pairs``.
    """
    sizes = _checked(rows)
    fed = sum(query for query, _ in sizes)
    matrices = matrix_costs(shape, fed, len(sizes) if logit_rows is None else logit_rows)
    layers = _alike_layers(shape)
    return StepCost(
        linear_flops=sum(cost.flops for cost in matrices),
        attention_flops=sum(
            count * _attention_flops(layer, sizes, attention) for layer, count in layers
        ),
        weight_bytes=_unlisted_bytes(shape) + sum(cost.weight_bytes for cost in matrices),
        kv_read_bytes=sum(
            count * layer.row_bytes * sum(_rows_read(layer, *size) for size in sizes)
            for layer, count in layers
        ),
        kv_write_bytes=fed * sum(layer.row_bytes * count for layer, count in layers),
        expansion_flops=_expansion_flops(shape, sizes),
    )


def matrix_costs(shape: ModelShape, query_tokens: int, logit_rows: int) -> tuple[MatrixCost, ...]:
    """Return what each weight matrix does in a step that feeds ``query_tokens`` over all sequences.

    Raises:
        InputError: If the shape lists no matrices.
    """
    if not shape.matrices:
        msg = f"the shape of {shape.model_type} lists no weight matrices, so no work can be counted"
        raise InputError(msg)
    element = shape.activation_dtype_bytes
    return tuple(
        _matrix_cost(matrix, (query_tokens, logit_rows), element) for matrix in shape.matrices
    )


def expected_experts(experts: int, chosen: int, tokens: int) -> float:
    """Return how many different experts ``tokens`` tokens are expected to use.

    Each token chooses ``chosen`` different experts, every choice equally likely and independent of
    the other tokens'. A trained router is less even, so the true number is at most about this.

    Source:
        An expert is missed by one token with probability 1 - k/E, hence by T with its T-th power.
    """
    return experts * (1 - (1 - chosen / experts) ** tokens)


def attended_pairs(
    query_tokens: int, context_tokens: int, window: int | None = None, *, is_chunked: bool = False
) -> int:
    """Return how many query-key pairs a causal mask allows.

    The queries are the last ``query_tokens`` of ``context_tokens`` positions. Without a window that
    is T·(2L - T + 1)/2; with one, each query attends to at most ``window`` keys, itself included.
    Chunked attention attends to the positions since its chunk's start instead.
    """
    first = context_tokens - query_tokens
    if window is None:
        return _triangle(context_tokens) - _triangle(first)
    if is_chunked:
        return _chunked_pairs(context_tokens, window) - _chunked_pairs(first, window)
    return _windowed_pairs(context_tokens, window) - _windowed_pairs(first, window)


def kv_stored_bytes(shape: ModelShape, context_tokens: int) -> int:
    """Return the K/V bytes one sequence of this length keeps; windowed layers keep their window."""
    return sum(
        count * layer.row_bytes * min(context_tokens, layer.window or context_tokens)
        for layer, count in _alike_layers(shape)
    )


def _checked(rows: Rows) -> list[tuple[int, int]]:
    sizes = [
        row if isinstance(row, tuple) else (row.query_tokens, row.context_tokens) for row in rows
    ]
    if not sizes:
        msg = "a step needs at least one sequence"
        raise InputError(msg)
    for query, context in sizes:
        if not 0 < query <= context:
            msg = (
                f"{query} tokens fed with a context of {context}: "
                "feed at least one, and no more than the context, which includes them"
            )
            raise InputError(msg)
    return sizes


def _matrix_cost(
    matrix: WeightMatrix, counts: tuple[int, int], element_bytes: int | None
) -> MatrixCost:
    query_tokens, logit_rows = counts
    if matrix.role is MatrixRole.EMBEDDING:
        return _gather_cost(matrix, query_tokens, element_bytes)
    tokens = logit_rows if matrix.role is MatrixRole.HEAD else query_tokens
    passes = tokens * matrix.experts_per_token
    used = expected_experts(matrix.experts, matrix.experts_per_token, tokens)
    weights = matrix.copies * matrix.experts * matrix.in_features * matrix.out_features
    columns = matrix.copies * (matrix.in_features + matrix.out_features)
    return MatrixCost(
        matrix=matrix,
        tokens=passes,
        flops=FLOPS_PER_MULTIPLY_ADD * passes * weights // matrix.experts,
        weight_bytes=round(matrix.bytes * used / matrix.experts),
        activation_bytes=passes * columns * element_bytes
        if element_bytes
        else passes * columns * matrix.bytes // weights,
        reuse=passes / used if used else None,
    )


def _gather_cost(matrix: WeightMatrix, query_tokens: int, element_bytes: int | None) -> MatrixCost:
    rows = min(query_tokens, matrix.in_features)  # a table cannot give more rows than it has
    gathered = rows * matrix.bytes // matrix.in_features
    return MatrixCost(
        matrix=matrix,
        tokens=query_tokens,
        flops=0,
        weight_bytes=gathered,
        activation_bytes=query_tokens * matrix.out_features * element_bytes
        if element_bytes
        else query_tokens * matrix.bytes // matrix.in_features,
        reuse=None,
    )


def _unlisted_bytes(shape: ModelShape) -> int:
    """Return the bytes of norms, biases and other parameters that every step reads."""
    listed = sum(matrix.bytes for matrix in shape.matrices if not matrix.is_tied)
    return max(0, shape.weight_bytes - shape.idle_weight_bytes - listed)


def _kv_row_bytes(shape: ModelShape) -> tuple[int, ...]:
    if shape.kv_row_bytes_per_layer or shape.kv_bytes_per_token is None:
        return shape.kv_row_bytes_per_layer or (0,) * len(shape.layer_types)
    keeps = [kind not in (LayerType.RECURRENT, LayerType.NONE) for kind in shape.layer_types]
    each = shape.kv_bytes_per_token // max(1, sum(keeps))
    return tuple(each if kept else 0 for kept in keeps)


def _window(shape: ModelShape, layer: int) -> int | None:
    if shape.windows_per_layer:
        return shape.windows_per_layer[layer]
    is_windowed = shape.layer_types[layer] in (LayerType.SLIDING, LayerType.CHUNKED)
    return shape.sliding_window if is_windowed else None


def _pair_flops(shape: ModelShape, layer: int) -> int:
    if shape.pair_flops_per_layer:
        return shape.pair_flops_per_layer[layer]
    if shape.layer_types[layer] in (LayerType.RECURRENT, LayerType.NONE):
        return 0
    width = shape.head_dim + (shape.value_head_dim or shape.head_dim)
    return FLOPS_PER_MULTIPLY_ADD * shape.num_attention_heads * width


@lru_cache(maxsize=64)
def _alike_layers(shape: ModelShape) -> tuple[tuple[_Layer, int], ...]:
    """Return each kind of layer with how many there are; most models have one kind or two."""
    row_bytes = _kv_row_bytes(shape)
    kinds = Counter(
        _Layer(
            window=_window(shape, layer),
            is_chunked=kind is LayerType.CHUNKED,
            row_bytes=row_bytes[layer],
            pair_flops=_pair_flops(shape, layer),
        )
        for layer, kind in enumerate(shape.layer_types)
    )
    return tuple(kinds.items())


def _attention_flops(layer: _Layer, sizes: list[tuple[int, int]], attention: Attention) -> int:
    window = layer.window
    if attention == "causal":
        pairs = sum(attended_pairs(*size, window, is_chunked=layer.is_chunked) for size in sizes)
    else:
        pairs = sum(query * _rows_held(window, query, context) for query, context in sizes)
    return pairs * layer.pair_flops


def _rows_held(window: int | None, query_tokens: int, context_tokens: int) -> int:
    """Return the keys an eager kernel multiplies with: those kept before the step and its own."""
    before = context_tokens - query_tokens
    return query_tokens + (before if window is None else min(before, window - 1))


def _rows_read(layer: _Layer, query_tokens: int, context_tokens: int) -> int:
    """Return the rows at least one query of a sequence attends to in this layer."""
    if layer.window is not None and layer.is_chunked:
        first = context_tokens - query_tokens
        return context_tokens - first // layer.window * layer.window
    return _rows_held(layer.window, query_tokens, context_tokens)


def _expansion_flops(shape: ModelShape, sizes: list[tuple[int, int]]) -> int:
    stored = sum(context - query for query, context in sizes)
    return sum(
        FLOPS_PER_MULTIPLY_ADD * stored * matrix.in_features * matrix.out_features * matrix.copies
        for matrix in shape.matrices
        if matrix.is_expansion
    )


def _triangle(count: int) -> int:
    return count * (count + 1) // 2


def _windowed_pairs(count: int, window: int) -> int:
    grown = min(count, window)
    return _triangle(grown) + (count - grown) * window


def _chunked_pairs(count: int, chunk: int) -> int:
    whole, rest = divmod(count, chunk)
    return whole * _triangle(chunk) + _triangle(rest)
