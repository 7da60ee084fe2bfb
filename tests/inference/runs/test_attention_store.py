"""Which maps are kept in memory when there are more than fit."""

from __future__ import annotations

import numpy as np

from inference.records.attention import AttentionChoice, AttentionMap
from inference.runs.attention_store import AttentionStore

FIRST, SECOND = AttentionChoice(layer=0, head=1), AttentionChoice(layer=2)
ROW_BYTES = 400


def row_map(step: int, choice: AttentionChoice = FIRST, queries: int = 1) -> AttentionMap:
    return AttentionMap(
        choice=choice,
        step_index=step,
        query_tokens=queries,
        kv_tokens=100,
        weights=np.zeros((1, queries, 100), dtype=np.float32),
    )


def steps(maps: tuple[AttentionMap, ...]) -> list[int]:
    return [one.step_index for one in maps]


def test_maps_are_kept_in_the_order_of_their_steps() -> None:
    store = AttentionStore(10 * ROW_BYTES)

    for step in (2, 0, 1):
        store.add(row_map(step))

    assert steps(store.of(FIRST)) == [0, 1, 2]


def test_a_map_takes_the_place_of_the_former_one_of_its_step() -> None:
    store = AttentionStore(2 * ROW_BYTES)
    again = row_map(0)

    for one in (row_map(0), row_map(1), again):
        store.add(one)

    assert store.of(FIRST)[0] is again
    assert steps(store.of(FIRST)) == [0, 1]


def test_choices_are_kept_apart_the_latest_first() -> None:
    store = AttentionStore(10 * ROW_BYTES)
    for step, choice in enumerate((FIRST, SECOND, FIRST)):
        store.add(row_map(step, choice))

    assert [maps[0].choice for maps in store.all()] == [FIRST, SECOND]
    assert (steps(store.of(FIRST)), steps(store.of(SECOND))) == ([0, 2], [1])


def test_the_oldest_decode_rows_go_first_and_the_prompt_stays() -> None:
    store = AttentionStore(6 * ROW_BYTES)
    store.add(row_map(0, queries=3))

    for step in range(1, 7):
        store.add(row_map(step))

    assert steps(store.of(FIRST)) == [0, 4, 5, 6]


def test_maps_of_a_former_choice_go_before_those_of_the_latest() -> None:
    store = AttentionStore(6 * ROW_BYTES)
    store.add(row_map(0, queries=3))
    store.add(row_map(1))
    store.add(row_map(0, SECOND, queries=3))
    store.add(row_map(1, SECOND))

    assert (steps(store.of(FIRST)), steps(store.of(SECOND))) == ([1], [0, 1])


def test_what_is_forgotten_makes_room() -> None:
    store = AttentionStore(2 * ROW_BYTES)
    for step in range(2):
        store.add(row_map(step))

    store.forget(FIRST)
    for step in range(2):
        store.add(row_map(step, SECOND))
    assert (store.of(FIRST), steps(store.of(SECOND))) == ((), [0, 1])

    store.forget()
    assert store.all() == ()
