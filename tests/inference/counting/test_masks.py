"""Masks against torch.tril and against what tiny random models really attend to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import (
    Llama4ForCausalLM,
    Llama4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from inference.counting.masks import Mask, Side, batched, causal, chunked, padding, sliding_window
from inference.records.errors import InputError

SIZES: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


def attended(model: torch.nn.Module, is_token: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return [row, query, key]: where the first layer's eager weights are not exactly zero."""
    ids = torch.arange(is_token.size).reshape(is_token.shape) % 30 + 1
    allowed = torch.from_numpy(is_token).long()
    with torch.inference_mode():
        out = model.eval()(ids, attention_mask=allowed, output_attentions=True)
    return (out.attentions[0] != 0).any(dim=1).numpy()  # [row, head, query, key]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("query_tokens", "context_tokens"), [(1, 1), (6, 6), (1, 9), (4, 9)],
    ids=["one token", "prefill", "decode", "chunk of prefill"],
)  # fmt: skip
def test_causal_is_the_last_rows_of_the_lower_triangle(
    query_tokens: int, context_tokens: int
) -> None:
    triangle = torch.tril(torch.ones(context_tokens, context_tokens, dtype=torch.bool)).numpy()

    mask = causal(query_tokens, context_tokens)

    assert mask.dtype == np.bool_
    assert np.array_equal(mask, triangle[context_tokens - query_tokens :])


@pytest.mark.golden
@pytest.mark.parametrize("window", [1, 3, 9, 100])
def test_a_window_is_the_triangle_less_the_triangle_one_window_lower(window: int) -> None:
    ones = torch.ones(9, 9, dtype=torch.bool)
    band = torch.tril(ones) & ~torch.tril(ones, diagonal=-window)

    assert np.array_equal(sliding_window(9, 9, window), band.numpy())
    assert np.array_equal(sliding_window(2, 9, window), band.numpy()[7:])


def test_a_window_of_three_worked_by_hand() -> None:
    assert sliding_window(5, 5, 3).astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]


@pytest.mark.golden
def test_chunks_are_triangles_along_the_diagonal() -> None:
    blocks = [torch.tril(torch.ones(size, size)) for size in (4, 4, 2)]
    diagonal = torch.block_diag(*blocks).bool().numpy()

    assert np.array_equal(chunked(10, 10, 4), diagonal)
    assert np.array_equal(chunked(3, 10, 4), diagonal[7:])


def test_a_chunk_as_long_as_the_context_is_causal() -> None:
    assert np.array_equal(chunked(5, 7, 7), causal(5, 7))


def test_padding_marks_each_rows_own_tokens() -> None:
    assert padding([1, 3, 0], 3, "left").astype(int).tolist() == [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    assert padding([1, 3, 0], 3, "right").astype(int).tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]


def test_a_batch_lets_tokens_attend_to_tokens_only() -> None:
    is_token = padding([2, 3], 3, "left")

    masks = batched(causal(3, 3), is_token)

    assert masks.astype(int).tolist() == [
        [[0, 0, 0], [0, 1, 0], [0, 1, 1]],
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
    ]
    assert batched(causal(1, 3), is_token).astype(int).tolist() == [[[0, 1, 1]], [[1, 1, 1]]]


@pytest.mark.golden
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_rows_attend_where_a_models_weights_are_not_zero(side: Side) -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation="eager"))
    is_token = padding([3, 7, 5], 7, side)

    seen = attended(model, is_token)

    expected = batched(causal(7, 7), is_token)
    assert np.array_equal(seen[is_token], expected[is_token])  # rows of real queries


@pytest.mark.golden
def test_a_models_window_is_ours_and_not_one_wider_or_narrower() -> None:
    torch.manual_seed(0)
    config = MistralConfig(**SIZES, sliding_window=4, attn_implementation="eager")

    (seen,) = attended(MistralForCausalLM(config), np.ones((1, 11), dtype=np.bool_))

    assert np.array_equal(seen, sliding_window(11, 11, 4))
    assert not np.array_equal(seen, sliding_window(11, 11, 3))
    assert not np.array_equal(seen, sliding_window(11, 11, 5))


@pytest.mark.golden
def test_a_models_chunks_are_ours() -> None:
    torch.manual_seed(0)
    config = Llama4TextConfig(
        **SIZES,
        head_dim=8,
        intermediate_size_mlp=32,
        num_local_experts=2,
        attention_chunk_size=4,
        layer_types=["chunked_attention"],
        attn_implementation="eager",
    )

    (seen,) = attended(Llama4ForCausalLM(config), np.ones((1, 11), dtype=np.bool_))

    assert np.array_equal(seen, chunked(11, 11, 4))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: causal(0, 4), "feeds 1 to 4 tokens, not 0"),
        (lambda: causal(5, 4), "feeds 1 to 4 tokens, not 5"),
        (lambda: sliding_window(2, 4, 0), "a window of 0 tokens allows nothing"),
        (lambda: chunked(2, 4, 0), "a chunk of 0 tokens allows nothing"),
        (lambda: padding([5], 4, "left"), "a row of 5 tokens does not fit into 4 places"),
    ],
)
def test_lengths_that_make_no_mask_are_refused(call: Callable[[], Mask], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
