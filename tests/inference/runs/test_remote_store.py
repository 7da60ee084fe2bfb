"""Kept runs of engines elsewhere: kept, listed, put aside, brought back, and bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inference.records.errors import RunFileError
from inference.runs.remote_store import RemoteStore
from tests.inference.remote.kept_runs import kept_run


def keys(store: RemoteStore) -> list[str]:
    return sorted(entry.key for entry in store.entries(10))


def test_a_run_comes_back_and_is_private(tmp_path: Path) -> None:
    store = RemoteStore(tmp_path)
    store.save(kept_run("one"))

    assert store.open("one") == kept_run("one")
    [entry] = store.entries(10)
    assert (entry.prompt, entry.tokens, entry.engine) == ("why", 3, "vLLM 0.32.0")
    [path] = store.folder.glob("*.gz")
    assert path.stat().st_mode & 0o077 == 0


def test_a_deleted_run_is_brought_back(tmp_path: Path) -> None:
    store = RemoteStore(tmp_path)
    store.save(kept_run("one"))
    store.save(kept_run("two"))

    store.delete(["one", "../two"])

    assert keys(store) == ["two"]
    store.restore(["one"])
    assert keys(store) == ["one", "two"]


@pytest.mark.parametrize("key", ["none", "../one", "a/b", ""])
def test_what_is_not_kept_is_a_sentence(tmp_path: Path, key: str) -> None:
    with pytest.raises(RunFileError, match="not kept here"):
        RemoteStore(tmp_path).open(key)


def test_a_damaged_file_is_listed_with_its_reason(tmp_path: Path) -> None:
    store = RemoteStore(tmp_path)
    store.save(kept_run("one"))
    (store.folder / "bad.json.gz").write_bytes(b"none of ours")

    problems = {entry.key: bool(entry.problem) for entry in store.entries(10)}

    assert problems == {"one": False, "bad": True}


def test_the_oldest_makes_room(tmp_path: Path) -> None:
    store = RemoteStore(tmp_path)
    store.save(kept_run("one"))
    os.utime(store.folder / "one.json.gz", (1, 1))
    size = (store.folder / "one.json.gz").stat().st_size
    bounded = RemoteStore(tmp_path, most_bytes=int(1.5 * size))

    bounded.save(kept_run("two"))

    assert keys(bounded) == ["two"]
