"""Loads kept on disk."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inference.records.arrivals import Marks, RemoteAsk, RemoteRequest, RemoteRun
from inference.records.endpoints import EndpointInfo, EngineKind
from inference.records.errors import RunFileError
from inference.records.options import Sampling
from inference.runs.load_store import LoadStore

ASK = RemoteAsk(model_id="m", prompt_text="Hi", max_new_tokens=1, sampling=Sampling(), seed=0)
RUN = RemoteRun(
    run_id="a",
    endpoint=EndpointInfo(
        address="http://h:1", engine=EngineKind.VLLM, version="1", models=(), offers=()
    ),
    started_at=datetime(2026, 12, 1, tzinfo=UTC),
    versions=(),
    requests=(RemoteRequest(request_id="r0", ask=ASK, marks=Marks(planned_s=0.0)),),
)


def test_a_load_is_opened_as_it_was_kept(tmp_path: Path) -> None:
    store = LoadStore(tmp_path)
    runs = (RUN, replace(RUN, run_id="b"))

    store.save("first", runs)

    assert LoadStore(tmp_path).open("first") == runs
    assert [one.key for one in store.entries()] == ["first"]
    store.delete("first")
    assert store.entries() == ()


@pytest.mark.parametrize("key", ["gone", "../first", "", "a" * 100])
def test_a_load_that_is_not_kept_is_refused_in_a_sentence(tmp_path: Path, key: str) -> None:
    with pytest.raises(RunFileError, match="not kept here"):
        LoadStore(tmp_path).open(key)


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    store = LoadStore(tmp_path)
    store.save("first", (RUN,))
    (store.folder / "first.json.gz").write_bytes(b"no gzip")

    with pytest.raises(RunFileError):
        store.open("first")


def test_the_oldest_make_room_for_the_newest(tmp_path: Path) -> None:
    store = LoadStore(tmp_path, most_bytes=1)

    store.save("first", (RUN,))
    store.save("second", (RUN,))

    assert [one.key for one in store.entries()] == ["second"]
