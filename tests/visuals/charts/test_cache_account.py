"""The cache's bytes put to account: formula, tensors, and why they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inference.records.model import LayerType
from inference.records.options import CacheKind
from inference.records.run import RunInfo
from inference.records.steps import CacheState, StepEvent
from tests.builders import TINY_SHAPE, run_info, step
from visuals.charts.cache_account import account, counted_per_layer

SHAPE = replace(
    TINY_SHAPE,
    kv_row_bytes_per_layer=(64, 64),
    kv_bytes_per_token=128,
    windows_per_layer=(None,) * 2,
)
MIXED = replace(SHAPE, layer_types=(LayerType.SLIDING, LayerType.FULL), windows_per_layer=(8, None))
INFO = replace(run_info(), shape=SHAPE)


def event(context: int, used: int, *, allocated: int | None = None, states: int = 0) -> StepEvent:
    total = used if allocated is None else allocated
    cache = CacheState(
        tokens_per_layer=(context, context),
        used_bytes=used,
        allocated_bytes=total,
        bytes_per_layer=(total // 2, total - total // 2),
        state_bytes=states,
    )
    return replace(step(0, context, 1), cache=cache)


def told(one: StepEvent, info: RunInfo = INFO) -> dict[str, Any]:
    shown = account((one,), info)
    assert shown is not None
    return shown


def test_before_the_first_step_there_is_nothing_to_account_for() -> None:
    assert account((), INFO) is None


def test_equal_bytes_are_called_equal_with_the_models_numbers_put_in() -> None:
    shown = told(event(10, 1280))

    assert (shown["verdict"], shown["reason"]) == ("equal", "")
    layers, used, allocated = shown["lines"]
    assert layers[0] == "2 layers, full attention"
    assert (
        layers[1].replace("\u00a0", " ")
        == "2 \u00d7 2 K/V heads \u00d7 4 \u00d7 4 B \u00d7 10 rows = 640 B"
    )
    assert layers[2] == "640 B each"
    assert (
        used[1]
        .replace("\u00a0", " ")
        .startswith(
            "2 \u00d7 2 layers \u00d7 2 K/V heads \u00d7 4 \u00d7 4 B \u00d7 10 tokens = 1,280 B"
        )
    )
    assert allocated[1] == ""


def test_a_window_keeps_one_row_less_and_says_that_it_has_reached_its_plateau() -> None:
    info = replace(INFO, shape=MIXED)

    before, after = told(event(6, 768), info), told(event(20, 64 * 27), info)

    assert counted_per_layer(event(20, 0), info) == (64 * 7, 64 * 20)
    assert (before["verdict"], before["reason"]) == ("equal", "")
    assert after["verdict"] == "equal"
    assert "plateau" in after["reason"]
    assert [line[0] for line in after["lines"][:2]] == [
        "1 layer, sliding window 8",
        "1 layer, full attention",
    ]


def test_a_static_window_has_room_for_all_of_it() -> None:
    info = replace(INFO, shape=MIXED, cache=CacheKind.STATIC)

    assert counted_per_layer(event(20, 0), info) == (64 * 8, 64 * 20)


def test_reserved_bytes_stand_beside_the_used_ones() -> None:
    info = replace(INFO, cache=CacheKind.STATIC)

    shown = told(event(10, 1280, allocated=6400), info)

    assert shown["verdict"] == "equal"
    assert shown["lines"][-1][:2] == ["allocated", "5,120 B reserved at the start"]


def test_a_quantised_cache_differs_and_says_why() -> None:
    shown = told(event(10, 336), replace(INFO, cache=CacheKind.QUANTISED))

    assert shown["verdict"] == "not equal"
    assert "1 byte instead of 4" in shown["reason"]


def test_bytes_that_nothing_explains_are_not_called_equal() -> None:
    assert told(event(10, 1281))["verdict"] == "not equal"


def test_states_are_named_so_and_are_in_no_sum() -> None:
    shown = told(event(10, 1280, states=512))

    assert shown["lines"][-1][0] == "recurrent states"
    assert shown["lines"][-1][2].startswith("512 B")
    assert shown["verdict"] == "equal"


def test_an_unknown_layout_is_not_counted() -> None:
    shape = replace(SHAPE, kv_row_bytes_per_layer=(), kv_bytes_per_token=None)

    shown = told(event(10, 1280), replace(INFO, shape=shape))

    assert shown["verdict"] == "not counted"
    assert shown["lines"][0][1] == "unknown"
