"""Which of the maps that are there answer for a choice of layer and head. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from inference.records.attention import AttentionChoice, AttentionMap

Maps = tuple[AttentionMap, ...]


def answering(sources: Iterable[Maps], choice: AttentionChoice, tokens: int) -> Maps:
    """Return the maps that answer for a choice: the first that hold every token, else the most.

    Args:
        sources: Maps of one choice each, in the order in which they are preferred.
        choice: The layer, head and request.
        tokens: Those that the request was fed.
    """
    best: Maps = ()
    for maps in sources:
        found = of_choice(maps, choice)
        if is_whole(found, tokens):
            return found
        if covered(found) > covered(best):
            best = found
    return best


def of_choice(maps: Maps, choice: AttentionChoice) -> Maps:
    """Return maps of one choice as those of another, where they hold it: of all heads, each."""
    if not maps or maps[-1].choice == choice:
        return maps
    captured = maps[-1].choice
    is_same = (captured.layer, captured.slot) == (choice.layer, choice.slot)
    if not (is_same and captured.is_all_heads):
        return ()
    if choice.head is None:
        is_exact = all(one.query_bin == one.kv_bin == 1 for one in maps)
        return tuple(_mean(one, choice) for one in maps) if is_exact else ()
    return tuple(_head(one, choice, choice.head) for one in maps if choice.head in one.heads)


def answers(captured: AttentionChoice, choice: AttentionChoice) -> bool:
    """Return whether maps of one choice may hold another."""
    is_same = (captured.layer, captured.slot) == (choice.layer, choice.slot)
    return captured == choice or (is_same and captured.is_all_heads)


def covered(maps: Sequence[AttentionMap]) -> int:
    """Return how many queries maps hold."""
    return sum(one.query_tokens for one in maps if one.weights is not None)


def is_whole(maps: Maps, tokens: int) -> bool:
    """Return whether maps hold the queries of all tokens, or say why there is none."""
    is_reasoned = bool(maps) and all(one.weights is None and one.reason for one in maps)
    return is_reasoned or (bool(maps) and covered(maps) >= tokens)


def _head(of_all: AttentionMap, choice: AttentionChoice, head: int) -> AttentionMap:
    """Return one head's part of a map of all heads."""
    at = of_all.heads.index(head)
    parts = (of_all.weights, of_all.first_token, of_all.rest_of_first_cell)
    weights, first, rest = (None if one is None else one[at : at + 1] for one in parts)
    return replace(
        of_all,
        choice=choice,
        heads=(head,),
        weights=weights,
        first_token=first,
        rest_of_first_cell=rest,
    )


def _mean(of_all: AttentionMap, choice: AttentionChoice) -> AttentionMap:
    """Return the mean over the heads of a map of all heads in which each weight is exact."""
    if of_all.weights is None:
        return replace(of_all, choice=choice, heads=())
    weights = of_all.weights.mean(axis=0, keepdims=True, dtype=np.float32)
    weights = weights.astype(of_all.weights.dtype)
    is_first = of_all.first_token is not None
    return replace(
        of_all,
        choice=choice,
        heads=(),
        weights=weights,
        first_token=weights[:, :, 0] if is_first else None,
        rest_of_first_cell=np.zeros_like(weights[:, :, 0]) if is_first else None,
    )
