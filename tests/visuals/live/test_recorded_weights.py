"""Attention weights inside a page that plays a run: those of the live page, when it has them."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.run import RunTrace
from inference.runs.packed_attention import packed, unpacked
from inference.runs.recordings import recorded_runs
from inference.runs.replay import run_until
from tests.visuals.traces import trace_of
from visuals.live.attention_feed import Captured, blocks_of, choice_item, played
from visuals.live.attention_maps import Maps, of_choice
from visuals.live.recorded_frames import stops_of
from visuals.live.recorded_weights import RecordedWeights, recorded_weights

PLENTY = 2**30
ALL = AttentionChoice(layer=1, is_all_heads=True)
RANDOM = np.random.default_rng(0)


def halves(item: dict[str, Any]) -> NDArray[np.uint16]:
    """Return the bits of an item's weights as the page's script reads them."""
    content = np.frombuffer(gzip.decompress(base64.b64decode(item["body"])), np.uint8)
    high, low = content.reshape(2, -1).astype(np.uint16)
    return ((high << 8) | low).astype(np.uint16)


def bits_of(maps: Maps) -> NDArray[np.uint16]:
    """Return the bits of all that is drawn of maps."""
    arrays = [array for one in maps for block in blocks_of(one) for array in block.arrays]
    return np.concatenate([array.astype("<f2").ravel() for array in arrays]).view(np.uint16)


def captured_run(prompt: int, outputs: int, heads: int) -> RunTrace:
    """Return a run with the exact weights of all heads of a layer."""
    trace = trace_of([b"p"] * prompt, [b"%d" % at for at in range(outputs)])
    sizes = [(0, prompt), *((prompt + at, 1) for at in range(outputs - 1))]
    maps = tuple(
        AttentionMap(
            choice=ALL,
            step_index=step,
            heads=tuple(range(heads)),
            query_start=start,
            query_tokens=queries,
            kv_tokens=start + queries,
            weights=RANDOM.random((heads, queries, start + queries)).astype(np.float16),
        )
        for step, (start, queries) in enumerate(sizes)
    )
    one = packed(ALL, maps, budget_bytes=PLENTY)
    assert one is not None
    return replace(trace, attention=(one,))


def of_run(trace: RunTrace, most: int = PLENTY) -> RecordedWeights:
    return recorded_weights(trace, stops_of(len(trace.events)), most)


def test_at_each_stop_those_are_shown_that_the_live_page_shows_of_a_run_that_plays() -> None:
    trace = recorded_runs("why-is-decode-slow")[0]
    stops = stops_of(len(trace.events))

    weights = of_run(trace)

    assert [item["choice"] for item in weights.items] == [
        choice_item(one.choice) for one in trace.attention
    ]
    for item, one in zip(weights.items, trace.attention, strict=True):
        maps = unpacked(one)
        captured = Captured(choice=one.choice, maps=maps)
        drawn: Any = item["maps"]
        for stop, steps in enumerate(stops):
            shown = played(captured, run_until(trace, steps, trace.state)).maps
            headers = [block for each in drawn if each["stop"] <= stop for block in each["blocks"]]
            assert headers == [block.header for map_ in shown for block in blocks_of(map_)]


def test_every_weight_is_the_one_that_is_drawn() -> None:
    trace = recorded_runs("why-is-decode-slow")[0]

    weights = of_run(trace)

    for item, one in zip(weights.items, trace.attention, strict=True):
        assert np.array_equal(halves(item), bits_of(unpacked(one)))


def test_of_all_heads_their_mean_is_there_too() -> None:
    trace = captured_run(prompt=5, outputs=3, heads=2)

    weights = of_run(trace)

    mean = replace(ALL, is_all_heads=False)
    assert [item["choice"] for item in weights.items] == [choice_item(ALL), choice_item(mean)]
    maps = of_choice(unpacked(trace.attention[0]), mean)
    assert np.array_equal(halves(weights.items[1]), bits_of(maps))
    assert weights.captured == ("layer 1, all heads",)


def test_heads_are_there_by_themselves_where_all_of_them_are_drawn_in_coarser_cells() -> None:
    trace = captured_run(prompt=150, outputs=2, heads=4)  # 128 cells a head, 256 for one alone

    weights = of_run(trace)

    heads = [choice_item(replace(ALL, is_all_heads=False, head=head)) for head in range(4)]
    assert [item["choice"] for item in weights.items[2:]] == heads
    drawn: Any = weights.items[2]["maps"]
    assert {block["kb"] for one in drawn for block in one["blocks"]} == {1}


def test_what_is_too_large_is_left_out_and_said() -> None:
    trace = recorded_runs("why-is-decode-slow")[0]
    sizes = [len(str(item["body"])) for item in of_run(trace).items]

    weights = of_run(trace, sizes[0] + sizes[1])

    assert weights.characters <= sizes[0] + sizes[1]
    assert len(weights.items) == len(weights.captured) == 2
    assert weights.left_out == (
        *("layer 7: too large", "layer 22: too large", "layer 29: too large"),
    )


def test_damaged_weights_are_left_out_and_said() -> None:
    trace = recorded_runs("why-is-decode-slow")[0]
    first, *others = trace.attention

    weights = of_run(replace(trace, attention=(replace(first, body="AAAA"), *others)))

    assert len(weights.items) == len(others)
    [said] = weights.left_out
    assert said.startswith("layer 15: ")


def test_a_run_without_weights_has_none() -> None:
    weights = of_run(trace_of([b"a"], [b"b"]))

    assert (weights.items, weights.captured, weights.left_out) == ((), (), ())
