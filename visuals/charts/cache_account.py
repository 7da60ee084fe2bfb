"""The K/V cache put to account: what each layer must keep, counted, beside what it stores.

Stored bytes hold tokens; reserved ones are the whole tensors. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from inference.counting.what_if import SCALE_BYTES, as_stored, scale_bytes
from inference.records.model import LayerType, ModelShape
from inference.records.options import CacheKind
from inference.records.run import RunInfo
from inference.records.steps import CacheState, StepEvent
from visuals.charts.attention import LayerKind, layer_kinds
from visuals.charts.kv_cache import contexts, counted_bytes
from visuals.charts.units import amount, counted, mebibytes

MOST_GROUPS = 6  # of layers that are alike
TIMES = "\u00a0\u00d7 "


class Verdict(StrEnum):
    """Whether the bytes stored are those counted."""

    EQUAL = "as counted"
    NOT_EQUAL = "not as counted"
    NOT_COUNTED = "not counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layers:
    """What layers that are alike have in common."""

    kind: LayerKind
    row_bytes: int
    rows: int


def account(events: Sequence[StepEvent], info: RunInfo) -> dict[str, object] | None:
    """Return verdict, reason and lines of name, formula and measured bytes; None before a step."""
    if not events:
        return None
    cache, rows = events[-1].cache, contexts(events)
    per_layer = counted_per_layer(rows, info)
    total = counted_bytes(rows, info) if per_layer is None else sum(per_layer)
    verdict = _verdict(cache, total)
    return {
        "verdict": verdict.value,
        "reason": _reason(verdict, rows, info),
        "lines": [
            *_layer_lines(cache, rows, info, per_layer),
            *_total_lines(cache, rows, info, total),
        ],
    }


def counted_per_layer(contexts: Sequence[int], info: RunInfo) -> tuple[int, ...] | None:
    """Return the K/V bytes that each layer must keep of real tokens; None where that is unknown.

    Args:
        contexts: Real tokens of each row that the cache holds.
        info: What the run is made with.
    """
    sizes = as_stored(info.shape, info.cache).kv_row_bytes_per_layer
    kinds = layer_kinds(info.shape)
    if not sizes or len(sizes) != len(kinds):
        return None
    return tuple(
        size * _rows_kept(contexts, kind, info.cache) + (scale_bytes(info.cache) if size else 0)
        for size, kind in zip(sizes, kinds, strict=True)
    )


def _rows_kept(contexts: Sequence[int], kind: LayerKind, cache: CacheKind) -> int:
    """Return the rows of K/V that one layer keeps.

    The next token of a window's layer reads one stored token less than the window holds, itself
    being the last of it, so a growing cache keeps no more; a static one has room for the window.
    """
    if kind.window is None:
        return sum(contexts)
    most = kind.window if cache is CacheKind.STATIC else kind.window - 1
    return sum(min(context, most) for context in contexts)


def _verdict(cache: CacheState, total: int | None) -> Verdict:
    if total is None:
        return Verdict.NOT_COUNTED
    return Verdict.EQUAL if total == cache.used_bytes else Verdict.NOT_EQUAL


def _reason(verdict: Verdict, contexts: Sequence[int], info: RunInfo) -> str:
    """Return why the stored bytes differ from those counted, or what else explains them."""
    if verdict is Verdict.NOT_COUNTED:
        return "How this model lays out its keys and values in each layer is unknown."
    if verdict is Verdict.NOT_EQUAL:
        return "The cache does not store the number of bytes that the model's shape gives."
    if info.cache is CacheKind.QUANTISED:
        width = info.shape.kv_dtype_bytes
        return (
            f"Quantised: each number takes 1 byte instead of {width}, and each layer keeps two "
            f"scales of {SCALE_BYTES // 2} bytes, one for its keys and one for its values."
        )
    limits = {kind.window for kind in layer_kinds(info.shape) if kind.window is not None}
    if any(max(contexts) >= limit for limit in limits):
        return "Layers with a window have reached their plateau: they drop the oldest token."
    return ""


def _layer_lines(
    cache: CacheState,
    contexts: Sequence[int],
    info: RunInfo,
    per_layer: tuple[int, ...] | None,
) -> list[list[str]]:
    """Return one line for each group of layers that are alike: name, formula, measured bytes."""
    shape, stored = as_stored(info.shape, info.cache), cache.stored_bytes_per_layer
    if per_layer is None or len(stored) != len(per_layer):
        return []
    kinds = layer_kinds(shape)
    groups: dict[_Layers, list[int]] = {}
    for layer, kind in enumerate(kinds):
        if kind.type is not LayerType.RECURRENT:
            row_bytes = shape.kv_row_bytes_per_layer[layer]
            rows = _rows_kept(contexts, kind, info.cache)
            group = _Layers(kind=kind, row_bytes=row_bytes, rows=rows)
            groups.setdefault(group, []).append(stored[layer])
    listed = list(groups.items())[:MOST_GROUPS]
    return [
        _group_line(group, members, shape, scale_bytes(info.cache)) for group, members in listed
    ]


def _group_line(
    group: _Layers, stored: list[int], shape: ModelShape, scale_bytes: int
) -> list[str]:
    """Return name, formula and bytes of layers that store that many bytes each."""
    name = f"{counted(len(stored), 'layer')}, {group.kind.label}"
    least, most = min(stored), max(stored)
    held = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    each = f"stored {held} B each" if len(stored) > 1 else f"stored {held} B"
    if not group.row_bytes:
        return [name, "no rows", each]
    formula = f"{_row_formula(group.row_bytes, shape)}{TIMES}{counted(group.rows, 'row')}"
    formula += f" + {scale_bytes} B of scales" if scale_bytes else ""
    return [name, f"{formula} = {group.row_bytes * group.rows + scale_bytes:,} B", each]


def _row_formula(row_bytes: int, shape: ModelShape) -> str:
    """Return how the bytes of one token in one layer come about."""
    heads, size, width = shape.num_key_value_heads, shape.head_dim, shape.kv_dtype_bytes
    if row_bytes == 2 * heads * size * width:
        return f"2{TIMES}{counted(heads, 'K/V head')}{TIMES}{size}{TIMES}{width} B"
    if width and row_bytes % width == 0:
        return f"{row_bytes // width:,} numbers{TIMES}{width} B"
    return f"{row_bytes:,} B"


def _total_lines(
    cache: CacheState, contexts: Sequence[int], info: RunInfo, total: int | None
) -> list[list[str]]:
    """Return the sums over all layers: stored, reserved, and states."""
    stored = f"stored {_bytes(cache.used_bytes)}"
    lines = [["all layers", _total_formula(contexts, info, total), stored]]
    spare = cache.allocated_bytes - cache.used_bytes
    reserved = _bytes(cache.allocated_bytes)
    lines.append(["reserved", _spare_words(spare, contexts, info), f"tensors {reserved}"])
    if cache.state_bytes:
        lines.append(["recurrent states", "the same at every step", _bytes(cache.state_bytes)])
    return lines


def _total_formula(contexts: Sequence[int], info: RunInfo, total: int | None) -> str:
    """Return the sum, written out with the model's numbers where its layers are all alike."""
    shape = as_stored(info.shape, info.cache)
    tokens = sum(contexts)
    scales = scale_bytes(info.cache) * shape.num_hidden_layers
    heads, size, width = shape.num_key_value_heads, shape.head_dim, shape.kv_dtype_bytes
    layers = shape.num_hidden_layers
    if not total or total - scales != 2 * layers * heads * size * width * tokens:
        return _bytes(total)
    parts = ("2", counted(layers, "layer"), counted(heads, "K/V head"), f"{size}", f"{width} B")
    product = TIMES.join((*parts, counted(tokens, "token")))
    product += f" + {scales} B of scales" if scales else ""
    return f"{product} = {_bytes(total)}"


def _spare_words(spare: int, contexts: Sequence[int], info: RunInfo) -> str:
    """Return what the reserved bytes that store no token are for."""
    if not spare:
        return "no more than is stored"
    if info.cache is CacheKind.STATIC:
        return f"{spare:,} B of them for tokens to come, reserved at the start"
    is_padded = len(set(contexts)) > 1
    if info.cache is CacheKind.QUANTISED:  # it is joined anew for each token, so there is no room
        return f"{spare:,} B of them padding"
    return f"{spare:,} B of them for tokens to come" + (" and padding" if is_padded else "")


def _bytes(count: int | None) -> str:
    """Return bytes exactly, and in MiB."""
    return "unknown" if count is None else f"{count:,} B = {amount(mebibytes(count), 'MiB')}"
