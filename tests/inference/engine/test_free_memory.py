"""How many rows' keys and values a device has room for, before a run begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inference.counting.costs import kv_stored_bytes
from inference.engine import free_memory
from inference.engine.free_memory import check_memory, free_cache_bytes
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind
from tests.builders import numbered_request as request
from tests.families import loaded_model as loaded
from tests.families import tiny_model

REQUESTS = [request(number, 10, new=11) for number in range(8)]  # each stores 20 tokens in the end


class Layer:
    """A decoder layer whose only weight is on this device."""

    def __init__(self, place: str) -> None:
        self.device = torch.device(place)

    def parameters(self) -> Iterator[Layer]:
        yield self


def spread_over(*places: str) -> Any:  # noqa: ANN401  stands for a model
    """Return what is asked of a model whose layers are on these devices."""
    layers = [Layer(place) for place in places]
    return SimpleNamespace(
        device=layers[0].device,
        parameters=lambda: iter(layers),
        get_decoder=lambda: SimpleNamespace(layers=layers),
    )


def room_for(rows: int) -> int:
    return rows * kv_stored_bytes(loaded().shape, 20)


def test_rows_that_do_not_fit_are_refused_with_how_many_do() -> None:
    with pytest.raises(InputError, match=r"8 rows of up to 20 tokens .* 5 of them fit; nothing"):
        check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: room_for(5))


def test_only_the_rows_that_run_together_need_room() -> None:
    check_memory(loaded(), REQUESTS, BatchPlan(slots=5), lambda _place: room_for(5))
    with pytest.raises(InputError, match="5 of them fit"):
        check_memory(loaded(), REQUESTS, BatchPlan(slots=6), lambda _place: room_for(5))


def test_no_row_grows_beyond_the_models_context() -> None:
    model = replace(loaded(), context_limit=20)
    long = [request(0, 10, new=10**9)]

    check_memory(model, long, BatchPlan(), lambda _place: room_for(1))


def test_a_device_that_does_not_tell_refuses_nothing() -> None:
    check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: None)
    assert free_cache_bytes(spread_over("mps")) is None


def test_a_quantised_cache_needs_room_for_a_byte_an_element() -> None:
    room = room_for(8) // loaded().shape.kv_dtype_bytes

    check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: room, CacheKind.QUANTISED)
    with pytest.raises(InputError, match="fit; nothing"):
        check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: room)


def test_the_gpu_that_is_full_first_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values of all layers were compared with the free memory of the first GPU."""
    free = {torch.device("cuda:0"): 3000, torch.device("cuda:1"): 500}
    monkeypatch.setattr(free_memory, "_free_bytes", free.__getitem__)

    # A quarter of the layers are on cuda:1, so all layers may take four times its 500 bytes.
    model = spread_over("cuda:0", "cuda:0", "cuda:0", "cuda:1")

    assert free_cache_bytes(model) == int(2000 * free_memory.SHARE_FOR_CACHE)


def test_the_processor_has_some_memory_left() -> None:
    free = free_cache_bytes(tiny_model("llama"))

    assert free is not None
    assert free > 0
