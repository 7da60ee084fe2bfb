"""Room for one more token in a cache of transformers' own, so that a step copies nothing.

A dynamic layer of the library joins its tensors anew for every token: at 4,096 tokens that moves
as many bytes as the weights. Here its tensors become the front part of larger ones, which grow in
blocks; the layer's ``keys`` and ``values`` stay ordinary tensors of the tokens stored so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer, StaticLayer

AXES = 4  # [row, kv_head, token, head_dim]
# Source: our own choice. A block of 256 costs one copy of the cache every 256 steps.
BLOCK_TOKENS = 256
ROOM = "_room"


@dataclass(slots=True)
class Room:
    """The larger tensors behind a dynamic layer's, and the layer's as they were last made.

    Attributes:
        keys: [row, kv_head, token, head_dim].
        values: Likewise.
        capacity: Tokens there is room for.
        nbytes: Of both tensors.
        front_keys: The part that the layer holds; once it holds another tensor, the room is void.
        front_values: Likewise.
    """

    keys: Tensor
    values: Tensor
    capacity: int
    nbytes: int
    front_keys: Tensor
    front_values: Tensor


def stored_tokens(layer: Any, dtype: torch.dtype) -> int | None:  # noqa: ANN401  layers share no typed base
    """Return the tokens each row holds, padding included; None where none of this dtype fits."""
    kind = type(layer)
    if kind is DynamicLayer and layer.is_initialized:
        is_plain = layer.keys.dim() == AXES and layer.keys.dtype is dtype
        return layer.keys.shape[-2] if is_plain else None
    if kind is StaticLayer and layer.is_initialized:
        held = int(layer.cumulative_length)
        is_plain = held < layer.max_cache_len and layer.keys.dtype is dtype
        return held if is_plain else None
    return None


def make_room(layer: Any, tokens: int) -> tuple[Tensor, Tensor]:  # noqa: ANN401  likewise
    """Count one more token into the layer and return where it goes.

    Args:
        layer: One for which ``stored_tokens`` is known.
        tokens: Those stored, the new one included.

    Returns:
        The tensors of keys and values [row, kv_head, token, head_dim], whose last two axes are
        dense. The new token's keys and values are still to be written.
    """
    if hasattr(layer, "max_cache_len"):
        layer.cumulative_length.add_(1)
        return layer.keys, layer.values
    room = room_of(layer)
    if room is None or room.capacity < tokens:
        keys, values = _grown(layer.keys), _grown(layer.values)
        nbytes = keys.nbytes + values.nbytes
        room = Room(keys, values, keys.shape[2], nbytes, layer.keys, layer.values)
        setattr(layer, ROOM, room)
    room.front_keys = layer.keys = room.keys.narrow(2, 0, tokens)
    room.front_values = layer.values = room.values.narrow(2, 0, tokens)
    return room.keys, room.values


def room_of(layer: Any) -> Room | None:  # noqa: ANN401  likewise
    """Return the larger tensors that a layer's are the front of; None where there are none.

    Once the layer holds other tensors its room is given back, since no byte of it is counted.
    """
    room: Room | None = layer.__dict__.get(ROOM)
    if room is not None and not _is_valid(room, layer):
        del layer.__dict__[ROOM]
        return None
    return room


def _is_valid(room: Room, layer: Any) -> bool:  # noqa: ANN401  likewise
    """True while the layer still holds what was last made of the room."""
    return layer.keys is room.front_keys and layer.values is room.front_values


def _grown(held: Tensor) -> Tensor:
    """Return a larger tensor with the same front part."""
    rows, heads, tokens, width = held.shape
    room = torch.empty(
        (rows, heads, (tokens // BLOCK_TOKENS + 1) * BLOCK_TOKENS, width),
        dtype=held.dtype,
        device=held.device,
    )
    room[:, :, :tokens] = held
    return room
