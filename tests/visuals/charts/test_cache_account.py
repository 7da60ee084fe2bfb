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


def test_bytes_as_counted_are_called_so_with_the_models_numbers_put_in() -> None:
    shown = told(event(10, 1280))

    assert (shown["verdict"], shown["reason"]) == ("as counted", "")
    layers, used, reserved = shown["lines"]
    assert layers[0] == "2 layers, full attention"
    assert (
        layers[1].replace("\u00a0", " ")
        == "2 \u00d7 2 K/V heads \u00d7 4 \u00d7 4 B \u00d7 10 rows = 640 B"
    )
    assert layers[2] == "stored 640 B each"
    assert (
        used[1]
        .replace("\u00a0", " ")
        .startswith(
            "2 \u00d7 2 layers \u00d7 2 K/V heads \u00d7 4 \u00d7 4 B \u00d7 10 tokens = 1,280 B"
        )
    )
    assert reserved[:2] == ["reserved", "no more than is stored"]


def test_a_window_keeps_one_row_less_and_says_that_it_has_reached_its_plateau() -> None:
    info = replace(INFO, shape=MIXED)

    before, after = told(event(6, 768), info), told(event(20, 64 * 27), info)

    assert counted_per_layer([20], info) == (64 * 7, 64 * 20)
    assert (before["verdict"], before["reason"]) == ("as counted", "")
    assert after["verdict"] == "as counted"
    assert "plateau" in after["reason"]
    assert [line[0] for line in after["lines"][:2]] == [
        "1 layer, sliding window 8",
        "1 layer, full attention",
    ]


def test_a_static_window_has_room_for_all_of_it() -> None:
    info = replace(INFO, shape=MIXED, cache=CacheKind.STATIC)

    assert counted_per_layer([20], info) == (64 * 8, 64 * 20)


def test_reserved_bytes_stand_beside_the_used_ones() -> None:
    info = replace(INFO, cache=CacheKind.STATIC)

    shown = told(event(10, 1280, allocated=6400), info)

    assert shown["verdict"] == "as counted"
    assert shown["lines"][-1][:2] == [
        "reserved",
        "5,120 B of them for tokens to come, reserved at the start",
    ]


def test_a_layers_line_says_what_is_stored_and_not_what_its_tensors_reserve() -> None:
    """The line read "10 rows = 640 B; tensors 3,200 B each" beside a badge that called it equal."""
    shown = told(event(10, 1280, allocated=6400))

    assert shown["verdict"] == "as counted"
    assert shown["lines"][0][1].endswith("10 rows = 640 B")
    assert shown["lines"][0][2] == "stored 640 B each"
    assert shown["lines"][-1][1:] == [
        "5,120 B of them for tokens to come",
        "tensors 6,400 B = 0.00610\u00a0MiB",
    ]


def test_a_quantised_cache_is_counted_with_its_bytes_and_scales() -> None:
    """It was counted with four bytes a number, and called not equal for being quantised."""
    info = replace(INFO, cache=CacheKind.QUANTISED)

    shown = told(event(10, 336), info)

    assert shown["verdict"] == "as counted"
    assert "1 byte instead of 4" in shown["reason"]
    assert counted_per_layer([10], info) == (168, 168)
    assert shown["lines"][0][1].endswith("1 B\u00a0\u00d7 10 rows + 8 B of scales = 168 B")
    assert shown["lines"][1][1].startswith("2\u00a0\u00d7 2 layers")
    assert told(event(10, 337), info)["verdict"] == "not as counted"


def test_layers_that_store_different_numbers_are_told_apart() -> None:
    info = replace(INFO, shape=MIXED)
    one = event(20, 64 * 27, allocated=64 * 64)
    held = replace(one.cache, used_bytes_per_layer=(64 * 7, 64 * 20))

    lines = told(replace(one, cache=held), info)["lines"]

    assert [line[2] for line in lines[:2]] == ["stored 448 B", "stored 1,280 B"]


def test_bytes_that_nothing_explains_are_not_called_equal() -> None:
    assert told(event(10, 1281))["verdict"] == "not as counted"


def test_states_are_named_so_and_are_in_no_sum() -> None:
    shown = told(event(10, 1280, states=512))

    assert shown["lines"][-1][0] == "recurrent states"
    assert shown["lines"][-1][2].startswith("512 B")
    assert shown["verdict"] == "as counted"


def test_an_unknown_layout_is_not_counted() -> None:
    shape = replace(SHAPE, kv_row_bytes_per_layer=(), kv_bytes_per_token=None)

    shown = told(event(10, 1280), replace(INFO, shape=shape))

    assert shown["verdict"] == "not counted"
    assert shown["lines"][0][1] == "unknown"
