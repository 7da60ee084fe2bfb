"""How many rows' keys and values a device has room for, before a run begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inference.counting.costs import kv_stored_bytes
from inference.engine.free_memory import check_memory, free_cache_bytes
from inference.records.errors import InputError
from inference.records.options import BatchPlan, CacheKind
from tests.builders import numbered_request as request
from tests.families import loaded_model as loaded

REQUESTS = [request(number, 10, new=11) for number in range(8)]  # each stores 20 tokens in the end


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
    assert free_cache_bytes(torch.device("mps")) is None


def test_a_quantised_cache_needs_room_for_a_byte_an_element() -> None:
    room = room_for(8) // loaded().shape.kv_dtype_bytes

    check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: room, CacheKind.QUANTISED)
    with pytest.raises(InputError, match="fit; nothing"):
        check_memory(loaded(), REQUESTS, BatchPlan(), lambda _place: room)


def test_the_processor_has_some_memory_left() -> None:
    free = free_cache_bytes(torch.device("cpu"))

    assert free is not None
    assert free > 0
