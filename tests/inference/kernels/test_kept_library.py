"""A compiled library is loaded only where nobody else can have written it, and only whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from inference.kernels.kept_library import KEPT_VERSIONS, is_trusted, kept_library
from inference.kernels.unavailable import UnavailableError

NOBODY = os.getuid() + 1


class Maker:
    """Writes a library, and counts how often."""

    def __init__(self, content: bytes = b"library") -> None:
        self.calls = 0
        self._content = content

    def __call__(self, path: Path) -> None:
        self.calls += 1
        path.write_bytes(self._content)
        path.chmod(0o777)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "kernels"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_library_is_made_once_in_a_folder_closed_to_others(folder: Path) -> None:
    make = Maker()

    path = kept_library(folder, "key", make)

    assert kept_library(folder, "key", make) == path
    assert make.calls == 1
    assert path.read_bytes() == b"library"
    assert mode(folder) == mode(path) == 0o700
    assert sorted(each.name for each in folder.iterdir()) == [path.name, f"{path.name}.sha256"]


@pytest.mark.parametrize(
    "content", [pytest.param(b"libr", id="cut"), pytest.param(b"", id="empty"), b"foreign"]
)
def test_a_library_that_is_not_whole_is_made_again(folder: Path, content: bytes) -> None:
    """Loading one that was cut short ended the program, at every start."""
    make = Maker()
    path = kept_library(folder, "key", make)
    path.write_bytes(content)

    kept_library(folder, "key", make)

    assert make.calls == 2
    assert path.read_bytes() == b"library"


def test_a_library_without_its_digest_is_made_again(folder: Path) -> None:
    make = Maker()
    path = kept_library(folder, "key", make)
    path.with_name(f"{path.name}.sha256").unlink()

    kept_library(folder, "key", make)

    assert make.calls == 2
    assert is_trusted(path)


@pytest.mark.parametrize("suffix", ["", ".sha256"])
@pytest.mark.parametrize("open_to", [0o720, 0o702], ids=["group", "everybody"])
def test_a_file_that_others_can_write_is_made_again(
    folder: Path, suffix: str, open_to: int
) -> None:
    make = Maker()
    path = kept_library(folder, "key", make)
    path.with_name(path.name + suffix).chmod(open_to)

    kept_library(folder, "key", make)

    assert make.calls == 2
    assert is_trusted(path)


def test_a_file_of_somebody_else_is_not_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept_library(folder, "key", Maker())
    assert is_trusted(path)

    monkeypatch.setattr(os, "getuid", lambda: NOBODY)

    assert not is_trusted(path)


def test_a_link_in_place_of_a_library_is_made_again(folder: Path, tmp_path: Path) -> None:
    make = Maker()
    path = kept_library(folder, "key", make)
    elsewhere = tmp_path / "elsewhere.so"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)

    kept_library(folder, "key", make)

    assert make.calls == 2
    assert not path.is_symlink()


@pytest.mark.parametrize("open_to", [0o770, 0o707, 0o777])
def test_a_folder_that_others_could_write_is_closed_and_filled_again(
    folder: Path, open_to: int
) -> None:
    make = Maker()
    old = kept_library(folder, "old", make)
    path = kept_library(folder, "key", make)
    folder.chmod(open_to)

    kept_library(folder, "key", make)

    assert make.calls == 3
    assert mode(folder) == 0o700
    assert is_trusted(path)
    assert not old.exists()


def test_a_folder_of_somebody_else_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Maker()
    kept_library(folder, "key", make)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)

    with pytest.raises(UnavailableError, match="another user; set TOKEN_BY_TOKEN_CACHE to one of"):
        kept_library(folder, "key", make)

    assert make.calls == 1


def test_a_link_to_a_folder_is_followed_before_it_is_trusted(folder: Path, tmp_path: Path) -> None:
    make = Maker()
    path = kept_library(folder, "key", make)
    link = tmp_path / "link"
    link.symlink_to(folder)
    folder.chmod(0o777)

    assert kept_library(link, "key", make) == path
    assert make.calls == 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UnavailableError, match=r"cannot be kept in .*/file/kernels"):
        kept_library(tmp_path / "file" / "kernels", "key", Maker())


def test_only_the_versions_used_last_are_kept(folder: Path) -> None:
    paths = [kept_library(folder, f"{key}", Maker()) for key in range(KEPT_VERSIONS)]
    for age, path in enumerate(paths):
        os.utime(path, (1000 - age, 1000 - age))
    kept_library(folder, "0", Maker())

    newest = kept_library(folder, "newest", Maker())

    assert set(folder.glob("*.so")) == {newest, *paths[:-1]}
    assert len(list(folder.iterdir())) == 2 * KEPT_VERSIONS
