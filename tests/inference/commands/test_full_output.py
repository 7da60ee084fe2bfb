"""Commands whose standard output takes no more."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from inference.commands import write_stdout
from inference.records.errors import InputError


class FullDisk:
    """A standard output that keeps what it is given and has no room for it at last."""

    def __init__(self, file_number: int) -> None:
        self._file_number = file_number

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fileno(self) -> int:
        return self._file_number


def test_a_full_disk_under_standard_output_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "full").open("wb") as file:
        monkeypatch.setattr(sys, "stdout", FullDisk(file.fileno()))

        with pytest.raises(InputError, match="standard output cannot be written: No space left"):
            write_stdout("{}")
