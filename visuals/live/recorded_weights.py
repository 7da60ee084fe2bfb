"""The attention weights that a run's file keeps, for a page that plays it without a server.

Cells are drawn as the live page draws them: the same blocks, of half-precision numbers. All high
bytes come before all low ones, since those repeat. No torch, no page.
"""

from __future__ import annotations

import base64
import gzip
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from inference.records.attention import AttentionChoice
from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs.packed_attention import unpacked
from visuals.live.attention_feed import MapBlock, blocks_of, choice_item
from visuals.live.attention_maps import Maps, of_choice
from visuals.live.attention_words import layer_words

LEVEL = 9  # of zlib

Captured: TypeAlias = tuple[AttentionChoice, Maps, str]  # with how it was captured


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWeights:
    """What a page can show of a run's attention.

    Attributes:
        items: One for each choice of layer and head, as the page's script reads it.
        captured: The choices that the run's file keeps, in words, and are among them.
        left_out: Those that are not, each with why.
    """

    items: tuple[dict[str, object], ...]
    captured: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def characters(self) -> int:
        """How long the weights are, as text."""
        return sum(len(str(item["body"])) for item in self.items)


def recorded_weights(
    trace: RunTrace, stops: Sequence[int], most_characters: int
) -> RecordedWeights:
    """Return the weights of a run, those of its first choices first, as many as fit.

    Of all heads of a layer the page shows each; their mean is here too, and each head by itself
    where together they are drawn in coarser cells.

    Args:
        trace: A run that is over.
        stops: Steps shown wherever the run can be held.
        most_characters: That they may take, as text.
    """
    items: list[dict[str, object]] = []
    captured: list[str] = []
    left_out: list[str] = []
    room = most_characters
    for choice, maps, note in _choices(trace, left_out):
        item = _item(choice, maps, note, _Visible(trace, choice.slot, stops))
        is_kept = any(choice == one.choice for one in trace.attention)
        if len(str(item["body"])) > room:
            if is_kept:
                left_out.append(f"{layer_words(choice)}: too large")
            continue
        room -= len(str(item["body"]))
        items.append(item)
        if is_kept:
            captured.append(layer_words(choice))
    return RecordedWeights(items=tuple(items), captured=tuple(captured), left_out=tuple(left_out))


class _Visible:
    """From which stop on a query of one request can be seen: once its token is stored."""

    def __init__(self, trace: RunTrace, slot: int, stops: Sequence[int]) -> None:
        request_id = trace.requests[slot].request_id
        steps = [
            (number, row.context_tokens)
            for number, event in enumerate(trace.events, start=1)
            for row in event.rows
            if row.request_id == request_id
        ]
        self._steps = [number for number, _stored in steps]
        self._stored = [stored for _number, stored in steps]
        self._stops = stops

    def stop(self, tokens: int) -> int | None:
        """Return the first stop at which so many tokens are stored; None where they never are."""
        at = bisect_left(self._stored, tokens)
        if at == len(self._steps):
            return None
        stop = bisect_left(self._stops, self._steps[at])
        return stop if stop < len(self._stops) else None


def _choices(trace: RunTrace, damaged: list[str]) -> Iterator[Captured]:
    """Yield what is kept, then the means of all heads, then heads that are finer by themselves.

    What cannot be unpacked is added to ``damaged``, with why.
    """
    of_all: list[Captured] = []
    for one in trace.attention:
        try:
            captured = (one.choice, unpacked(one), one.note)
        except RunFileError as error:
            damaged.append(f"{layer_words(one.choice)}: {error}")
            continue
        if one.choice.is_all_heads:
            of_all.append(captured)
        yield captured
    kept = {one.choice for one in trace.attention}
    for choice, maps, note in (
        *map(_mean, of_all),
        *(one for all_ in of_all for one in _heads(all_)),
    ):
        if maps and choice not in kept:
            yield choice, maps, note


def _mean(captured: Captured) -> Captured:
    """Return the mean of all heads; without maps where these are not exact."""
    choice, maps, note = captured
    mean = replace(choice, is_all_heads=False)
    return mean, of_choice(maps, mean), note


def _heads(captured: Captured) -> Iterator[Captured]:
    """Yield each head, where all of them together are drawn in coarser cells than were kept."""
    choice, maps, note = captured
    is_coarser = any(
        (block.header["qb"], block.header["kb"]) != (one.query_bin, one.kv_bin)
        for one in maps
        for block in blocks_of(one)[:1]
    )
    for head in maps[0].heads if is_coarser else ():
        own = replace(choice, is_all_heads=False, head=head)
        yield own, of_choice(maps, own), note


def _item(choice: AttentionChoice, maps: Maps, note: str, visible: _Visible) -> dict[str, object]:
    """Return the maps of one choice as the page's script reads them."""
    drawn: list[dict[str, object]] = []
    blocks: list[MapBlock] = []
    for one in maps:
        stop = visible.stop(one.query_start + one.query_tokens)
        if stop is None:
            continue
        of_map = blocks_of(one)
        blocks += of_map
        headers = [block.header for block in of_map]
        drawn.append({"stop": stop, "reason": one.reason, "blocks": headers})
    return {"choice": choice_item(choice), "note": note, "maps": drawn, "body": _body(blocks)}


def _body(blocks: Iterable[MapBlock]) -> str:
    """Return the arrays of blocks one after another: high bytes, low bytes, gzip, base64."""
    arrays = [array.astype("<f2").ravel() for block in blocks for array in block.arrays]
    halves = np.concatenate([np.empty(0, "<f2"), *arrays]).view(np.uint8).reshape(-1, 2)
    content = halves[:, 1].tobytes() + halves[:, 0].tobytes()
    return base64.b64encode(gzip.compress(content, LEVEL, mtime=0)).decode()
