"""Files written in one stroke."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from inference.storage.atomic_write import replace_file


def test_a_file_has_its_new_content_and_the_users_ordinary_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    mask = os.umask(0o027)
    try:
        replace_file(path, b"new")
    finally:
        os.umask(mask)

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()

    with pytest.raises(IsADirectoryError):
        replace_file(path, b"new")

    assert list(tmp_path.iterdir()) == [path]
