"""Playlists as records: what a change leaves, and where an item's run comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.records.errors import InputError, RunFileError
from inference.records.run import RunTrace
from inference.runs.playlists import (
    MOST_ITEMS,
    Playlist,
    PlaylistItem,
    moved,
    one_line,
    run_of,
    with_item,
    with_items,
    with_runs_inside,
    without,
)
from inference.runs.recordings import FIRST_RUN, recorded_runs
from inference.runs.store import RunStore
from tests.builders import run_info
from tests.visuals.traces import trace_of

ONE, TWO, THREE = (PlaylistItem(recording=name) for name in ("one", "two", "three"))
LIST = Playlist(title="all", items=(ONE, TWO, THREE))


@pytest.fixture
def run() -> RunTrace:
    return replace(trace_of([b"why"], [b"be", b"cause"]), info=run_info("mine"))


@pytest.fixture
def store(tmp_path: Path, run: RunTrace) -> RunStore:
    store = RunStore(tmp_path)
    store.save(run)
    return store


@pytest.mark.parametrize(
    ("index", "by", "expected"),
    [
        (0, 1, (TWO, ONE, THREE)),
        (2, -1, (ONE, THREE, TWO)),
        (0, 2, (TWO, THREE, ONE)),
        (0, -1, (ONE, TWO, THREE)),
        (2, 1, (ONE, TWO, THREE)),
        (7, -1, (ONE, TWO, THREE)),
    ],
)
def test_an_item_moves_and_stays_at_the_ends(
    index: int, by: int, expected: tuple[PlaylistItem, ...]
) -> None:
    assert moved(LIST, index, by).items == expected


def test_items_come_go_and_change_and_the_former_list_stays() -> None:
    noted = replace(TWO, note="look")

    assert without(LIST, 1).items == (ONE, THREE)
    assert with_item(LIST, 1, noted).items == (ONE, noted, THREE)
    assert with_items(LIST, [ONE]).items == (ONE, TWO, THREE, ONE)
    assert LIST.items == (ONE, TWO, THREE)


def test_more_items_than_a_list_may_have_are_refused() -> None:
    with pytest.raises(InputError, match=f"{MOST_ITEMS} items at most"):
        with_items(LIST, [ONE] * MOST_ITEMS)


def test_a_note_is_one_line_and_not_too_long() -> None:
    assert one_line("  a\n\tb  c", 4) == "a b "


def test_a_run_is_found_by_its_kind(store: RunStore, run: RunTrace) -> None:
    assert run_of(PlaylistItem(kept="mine"), store) == run
    assert run_of(PlaylistItem(run=run), store) is run
    [first] = recorded_runs(FIRST_RUN)
    assert run_of(PlaylistItem(recording=FIRST_RUN), store) is first


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (PlaylistItem(kept="gone"), "run gone is not kept here"),
        (PlaylistItem(kept="../../etc/passwd"), "is not kept here"),
        (PlaylistItem(recording="nothing"), "no recording named nothing"),
        (PlaylistItem(problem="the run file is damaged", unread="{}"), "the run file is damaged"),
    ],
)
def test_a_run_that_is_not_here_is_a_sentence(
    store: RunStore, item: PlaylistItem, words: str
) -> None:
    with pytest.raises(RunFileError, match=words):
        run_of(item, store)


def test_kept_runs_are_put_inside_and_what_is_missing_stays_named(
    store: RunStore, run: RunTrace
) -> None:
    kept, gone = PlaylistItem(kept="mine", note="a"), PlaylistItem(kept="gone", note="b")

    whole = with_runs_inside(Playlist(items=(ONE, kept, gone)), store)

    assert whole.items == (ONE, PlaylistItem(run=run, note="a"), gone)
