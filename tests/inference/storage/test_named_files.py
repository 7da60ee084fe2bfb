"""What a user names as the file to write: links, pipes, devices, folders."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.records.errors import InputError
from inference.storage.named_files import check_named_file, write_named_file


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "run.json", tmp_path / "run.json"
    target.write_bytes(b"old")
    link.symlink_to(target)

    write_named_file(link, b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_yet_makes_the_file_it_names(tmp_path: Path) -> None:
    link = tmp_path / "run.json"
    link.symlink_to(tmp_path / "target.json")

    write_named_file(link, b"new")

    assert link.is_symlink()
    assert (tmp_path / "target.json").read_bytes() == b"new"


def test_a_file_of_two_names_keeps_both(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"something longer")
    second.hardlink_to(first)

    write_named_file(first, b"new")

    assert second.read_bytes() == b"new"
    assert first.samefile(second)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    check_named_file(pipe)
    write_named_file(pipe, b"new")
    reader.join(30)

    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an ordinary file that says of itself to be a character device."""
    path = tmp_path / "device"
    path.write_bytes(b"")
    number = path.stat().st_ino
    own_stat = Path.stat

    def told(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        state = own_stat(self, follow_symlinks=follow_symlinks)
        if state.st_ino != number:
            return state
        kind = stat.S_IFCHR | stat.S_IMODE(state.st_mode)
        return os.stat_result((kind, *state[1:]))

    monkeypatch.setattr(Path, "stat", told)
    return path


def test_a_device_is_written_to_and_never_replaced(device: Path) -> None:
    before = device.stat().st_ino

    check_named_file(device)
    write_named_file(device, b"new")

    assert device.read_bytes() == b"new"
    assert device.stat().st_ino == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.symlink_to(path), "cannot be written"),
        (lambda path: path.symlink_to(path.parent / "none" / "run.json"), "does not exist"),
        (lambda path: path.symlink_to(path.parent), "is a folder"),
    ],
    ids=["folder", "link to itself", "link into nowhere", "link to a folder"],
)
def test_what_cannot_be_written_is_said_before_anything_is_done(
    tmp_path: Path,
    make: Callable[[Path], None],
    words: str,
) -> None:
    path = tmp_path / "out"
    make(path)

    with pytest.raises(InputError, match=words):
        check_named_file(path)


def test_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"data")
    own_stat = Path.stat
    monkeypatch.setattr(
        Path,
        "stat",
        lambda self, **how: os.stat_result((stat.S_IFBLK | 0o660, *own_stat(self, **how)[1:])),
    )

    with pytest.raises(InputError, match="is a disk"):
        check_named_file(path)
    with pytest.raises(InputError, match="is a disk"):
        write_named_file(path, b"new")

    assert path.read_bytes() == b"data"
