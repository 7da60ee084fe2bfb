"""Which cells of queries x keys may be attended to, from lengths alone.

Every mask is a bool array, True where attention is allowed. Query i of a step that feeds
``query_tokens`` and ends with ``context_tokens`` in the cache sits at position
``context_tokens - query_tokens + i``; key j sits at position j. Masks combine with ``&``. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inference.records.errors import InputError

Mask = NDArray[np.bool_]
Side = Literal["left", "right"]


def causal(query_tokens: int, context_tokens: int) -> Mask:
    """Return the mask under which a token attends to itself and all before it.

    A prefill of n tokens gives the lower triangle of n x n, a decode step one row of ones, a chunk
    of prefill a rectangle and a triangle.

    Returns:
        [query, key].
    """
    query, key = _positions(query_tokens, context_tokens)
    return key <= query


def sliding_window(query_tokens: int, context_tokens: int, window: int) -> Mask:
    """Return the mask under which a token attends to the last ``window`` tokens, itself included.

    Returns:
        [query, key].

    Source:
        Beltagy et al. 2020 (Longformer), section 3.1, made causal as in Jiang et al. 2023
        (Mistral 7B), figure 1: allowed where 0 <= query - key < window.
    """
    _check_at_least_one(window, "window")
    query, key = _positions(query_tokens, context_tokens)
    return (key <= query) & (query - key < window)


def chunked(query_tokens: int, context_tokens: int, chunk_tokens: int) -> Mask:
    """Return the mask under which a token attends to itself and those before it in its own chunk.

    Chunks are counted from the first token of the context: 0 to c - 1, c to 2c - 1, and so on.

    Returns:
        [query, key].
    """
    _check_at_least_one(chunk_tokens, "chunk")
    query, key = _positions(query_tokens, context_tokens)
    return (key <= query) & (key // chunk_tokens == query // chunk_tokens)


def padding(lengths: Sequence[int], padded_tokens: int, side: Side) -> Mask:
    """Return which places of a padded batch hold a token of the row.

    Args:
        lengths: Tokens of each row, without padding.
        padded_tokens: Places of each row, padding included.
        side: Where the padding is.

    Returns:
        [row, place].
    """
    longest = max(lengths, default=0)
    if longest > padded_tokens:
        msg = f"a row of {longest} tokens does not fit into {padded_tokens} places"
        raise InputError(msg)
    places = np.arange(padded_tokens)
    rows = np.asarray(lengths, dtype=np.int64)[:, None]  # [row, 1]
    return places >= padded_tokens - rows if side == "left" else places < rows


def batched(mask: Mask, is_token: Mask) -> Mask:
    """Return each row's mask in a padded batch: what ``mask`` allows, between real tokens.

    A padding query is allowed nothing: what a model computes for it is thrown away.

    Args:
        mask: [query, key], counted in places, for the last places of ``is_token``.
        is_token: [row, place], from :func:`padding`.

    Returns:
        [row, query, key].
    """
    queries = is_token[:, is_token.shape[1] - mask.shape[0] :]
    return mask[None] & is_token[:, None, :] & queries[:, :, None]


def _positions(
    query_tokens: int, context_tokens: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of queries [query, 1] and keys [1, key]."""
    if not 0 < query_tokens <= context_tokens:
        msg = f"a step feeds 1 to {context_tokens} tokens, not {query_tokens}"
        raise InputError(msg)
    query = np.arange(context_tokens - query_tokens, context_tokens)
    return query[:, None], np.arange(context_tokens)[None, :]


def _check_at_least_one(tokens: int, name: str) -> None:
    """Raise InputError unless a window or chunk holds a token."""
    if tokens < 1:
        msg = f"a {name} of {tokens} tokens allows nothing; give 1 or more"
        raise InputError(msg)
