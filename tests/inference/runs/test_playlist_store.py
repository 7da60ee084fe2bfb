"""Playlists on disk: kept, replaced, deleted and brought back; a damaged one says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.records.errors import InputError, RunFileError
from inference.runs import playlist_store
from inference.runs.playlist_store import SUFFIX, PlaylistEntry, PlaylistStore
from inference.runs.playlists import Playlist, PlaylistItem

LIST = Playlist(title="Monday", items=(PlaylistItem(recording="a", note="n"),))


@pytest.fixture
def store(tmp_path: Path) -> PlaylistStore:
    return PlaylistStore(tmp_path)


def test_a_playlist_is_kept_and_replaced_under_its_key(store: PlaylistStore) -> None:
    key = store.save(LIST)
    assert store.open(key) == LIST
    changed = replace(LIST, title="Tuesday and more")

    assert store.save(changed, key) == key

    assert store.open(key) == changed
    assert store.entries() == (PlaylistEntry(key=key, title="Tuesday and more", items=1),)
    assert PlaylistStore(store.folder.parent).open(key) == changed
    assert (store.folder / f"{key}{SUFFIX}").stat().st_mode & 0o077 == 0


def test_a_deleted_playlist_comes_back(store: PlaylistStore) -> None:
    key = store.save(LIST)

    store.delete(key)
    assert store.entries() == ()
    with pytest.raises(RunFileError, match="is not kept here"):
        store.open(key)
    store.restore(key)

    assert store.open(key) == LIST


@pytest.mark.parametrize("key", ["nope", "../../etc/passwd", "", "a b", "%2e%2e"])
def test_a_key_that_names_none_is_a_sentence(store: PlaylistStore, key: str) -> None:
    with pytest.raises(RunFileError, match="is not kept here"):
        store.open(key)
    store.delete(key)
    store.restore(key)


def test_a_damaged_file_stays_in_the_list_with_what_is_wrong(store: PlaylistStore) -> None:
    key = store.save(LIST)
    (store.folder / f"bad{SUFFIX}").write_text("{}", encoding="utf-8")

    bad, good = sorted(store.entries(), key=lambda entry: entry.key != "bad")

    assert "no playlist of this program" in bad.problem
    assert (good.key, good.problem) == (key, "")


def test_there_is_room_for_so_many(store: PlaylistStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playlist_store, "MOST_PLAYLISTS", 1)
    key = store.save(LIST)

    with pytest.raises(InputError, match="delete one first"):
        store.save(LIST)
    store.save(replace(LIST, title="again"), key)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "playlists").write_text("in the way", encoding="utf-8")

    with pytest.raises(InputError, match="cannot be kept in"):
        PlaylistStore(tmp_path).save(LIST)
