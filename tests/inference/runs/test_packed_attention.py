"""Attention weights in run files: small, back as they were, and nothing believed unchecked."""

from __future__ import annotations

import base64
import json
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inference.records.attention import AttentionChoice, AttentionMap, PackedAttention
from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs import packed_attention
from inference.runs.packed_attention import packed, packed_together, unpacked
from inference.runs.run_file import read_bytes, to_json
from tests.builders import numbered_request, run_from_json, step, trace_with

CHOICE = AttentionChoice(layer=1, is_all_heads=True)
RANDOM = np.random.default_rng(7)


def soft(planes: int, queries: int, keys: int) -> np.ndarray[Any, np.dtype[np.float16]]:
    """Return weights whose rows sum to 1."""
    scores = np.exp(RANDOM.normal(size=(planes, queries, keys)) * 2)
    return (scores / scores.sum(axis=2, keepdims=True)).astype(np.float16)


def prompt_map(tokens: int = 4, planes: int = 2) -> AttentionMap:
    weights = soft(planes, tokens, tokens)
    return AttentionMap(
        choice=CHOICE,
        heads=tuple(range(planes)),
        query_tokens=tokens,
        kv_tokens=tokens,
        weights=weights,
        first_token=weights[:, :, 0],
        rest_of_first_cell=np.zeros((planes, tokens), dtype=np.float16),
        first_output_query=tokens - 1,
    )


def row_map(step: int, query: int, planes: int = 2) -> AttentionMap:
    weights = soft(planes, 1, query + 1)
    return AttentionMap(
        choice=CHOICE,
        step_index=step,
        heads=tuple(range(planes)),
        query_start=query,
        query_tokens=1,
        kv_tokens=query + 1,
        weights=weights,
        first_token=weights[:, :, 0],
        rest_of_first_cell=np.zeros((planes, 1), dtype=np.float16),
    )


def assert_equal(one: AttentionMap, other: AttentionMap) -> None:
    assert packed_attention.layout_of(one) == packed_attention.layout_of(other)
    for name in ("weights", "first_token", "rest_of_first_cell"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            assert np.array_equal(ours, theirs, equal_nan=True), name


def kept(*maps: AttentionMap) -> PackedAttention:
    one = packed(CHOICE, maps)
    assert one is not None
    return one


def run_with(*attention: PackedAttention) -> RunTrace:
    run = trace_with([step(index, 4, 65) for index in range(4)])
    return replace(run, requests=(numbered_request(0, 4),), attention=attention)


def test_maps_come_back_as_they_were() -> None:
    maps = (prompt_map(), row_map(1, 4), row_map(2, 5))

    back = unpacked(kept(*maps))

    assert len(back) == 3
    for one, other in zip(maps, back, strict=True):
        assert_equal(one, other)


def test_a_run_file_keeps_them() -> None:
    run = run_with(kept(prompt_map(), row_map(1, 4)))

    assert run_from_json(to_json(run)) == run


def test_a_file_without_them_opens() -> None:
    plain: dict[str, Any] = json.loads(to_json(run_with()))
    del plain["attention"]

    assert run_from_json(json.dumps(plain)).attention == ()


def test_a_map_without_weights_keeps_its_reason() -> None:
    empty = AttentionMap(choice=CHOICE, step_index=3, reason="this layer has no attention")

    [back] = unpacked(kept(empty))

    assert (back.weights, back.reason) == (None, "this layer has no attention")


def test_a_weight_that_was_no_number_stays_none_and_a_rounding_above_1_is_1() -> None:
    row = row_map(1, 4)
    weights = np.array([[[np.nan, 1.0000001, 0, 0, 0]]] * 2, dtype=np.float32)

    [back] = unpacked(kept(replace(row, weights=weights)))

    assert back.weights is not None
    assert np.isnan(back.weights[:, 0, 0]).all()
    assert back.weights[0, 0, 1:].tolist() == [1, 0, 0, 0]


def test_binned_maps_keep_what_the_first_token_got() -> None:
    binned = replace(
        prompt_map(),
        kv_bin=2,
        query_bin=2,
        weights=soft(2, 2, 2),
        first_token=soft(2, 1, 2)[:, 0],
        rest_of_first_cell=soft(2, 1, 2)[:, 0],
    )

    [back] = unpacked(kept(binned))

    assert_equal(binned, back)


def test_what_does_not_fit_is_binned_by_maximum_and_then_left_out() -> None:
    maps = [row_map(step, 200 + step) for step in range(40)]
    whole = len(kept(*maps).body)

    half = packed(CHOICE, maps, budget_bytes=whole // 2)
    none = packed(CHOICE, maps, budget_bytes=100)

    assert none is None
    assert half is not None
    assert len(half.body) <= whole // 2
    for one, back in zip(maps, unpacked(half), strict=True):
        size = back.kv_bin
        assert size > 1
        assert one.weights is not None
        assert back.weights is not None
        assert back.first_token is not None
        assert back.rest_of_first_cell is not None
        assert np.array_equal(back.weights[:, :, 0], one.weights[:, :, :size].max(axis=2))
        assert np.array_equal(back.first_token, one.weights[:, :, 0])
        assert np.array_equal(back.rest_of_first_cell, one.weights[:, :, 1:size].max(axis=2))


def test_choices_share_one_budget() -> None:
    maps = [row_map(step, 60 + step) for step in range(4)]
    budget_bytes = int(len(kept(*maps).body) * 1.8)
    captures = [(AttentionChoice(layer=layer), maps, "") for layer in range(9)]

    together = packed_together(captures, budget_bytes=budget_bytes)

    assert [one.choice.layer for one in together][:2] == [0, 1]
    assert sum(len(one.body) for one in together) <= budget_bytes
    assert unpacked(together[0])[0].kv_bin == 1 < unpacked(together[1])[0].kv_bin


def test_a_long_prompt_of_many_heads_stays_within_the_budget_of_a_run() -> None:
    rows = [row_map(step, 2000 + step, planes=9) for step in range(64)]

    assert len(kept(*rows).body) < packed_attention.BUDGET_BYTES


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a run file whose first captured choice was tampered with."""
    plain: dict[str, Any] = json.loads(to_json(run_with(kept(prompt_map(), row_map(1, 4)))))
    change(plain["attention"][0])
    return json.dumps(plain).encode()


def layout(index: int, **values: object) -> Callable[[dict[str, Any]], None]:
    return lambda one: one["maps"][index].update(values)


def choice(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda one: one["choice"].update(values)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (layout(1, query_tokens=10**9), "more than the run fed"),
        (layout(1, kv_tokens=10**9), "more than the run fed"),
        (layout(1, kv_start=-1), "below 0"),
        (layout(0, query_tokens=0), "none"),
        (layout(0, kv_bin=0), "at least one"),
        (layout(0, heads=list(range(2**21))), "more weights"),
        (layout(0, heads=[1, 1]), "two are the same"),
        (layout(0, query_tokens="4"), "integer"),
        (choice(layer=2), "not one of the model's"),
        (choice(layer=-1), "not one of the model's"),
        (choice(slot=1), "not one of the requests"),
        (choice(head=-3), "negative"),
    ],
)
def test_a_file_that_declares_the_impossible_is_refused(
    change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    with pytest.raises(RunFileError, match=complaint):
        read_bytes(changed(change))


def test_more_text_than_the_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_attention, "BUDGET_BYTES", 10)

    with pytest.raises(RunFileError, match="larger than"):
        read_bytes(changed(lambda _one: None))


def test_the_same_choice_twice_is_refused() -> None:
    one = kept(prompt_map())

    with pytest.raises(RunFileError, match="two of the same"):
        read_bytes(to_json(run_with(one, one)).encode())


def body_of(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("not base64!", "broken"),
        (base64.b64encode(b"not zlib").decode(), "broken"),
        (body_of(b"\0" * 7), "size"),
        (body_of(b"\0" * 65), "size"),
        (body_of(b"\x7c" * 32 + b"\0" * 32), "between 0 and 1"),  # infinity
        (body_of(b"\xbc" * 32 + b"\0" * 32), "between 0 and 1"),  # -1
        (body_of(b"\x40" * 32 + b"\0" * 32), "between 0 and 1"),  # 2
        (body_of(b"\x7f" * 32 + b"\xff" * 32), "between 0 and 1"),  # another NaN
        ("", "broken|size"),
    ],
)
def test_weights_that_are_none_are_refused(body: str, complaint: str) -> None:
    with pytest.raises(RunFileError, match=complaint):
        unpacked(replace(kept(prompt_map()), body=body))


def test_a_bomb_takes_no_more_memory_than_was_declared() -> None:
    bomb = replace(kept(prompt_map()), body=body_of(b"\0" * 2**28))

    tracemalloc.start()
    with pytest.raises(RunFileError, match="size"):
        unpacked(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2**22
