"""Compiled libraries in a folder of this user's own, loaded only where nobody else can write.

A library is code that runs with all that this user may do. So the folder and every file in it must
belong to this user and be closed to others, and beside each library lies the SHA-256 of its bytes:
one that was cut short, emptied or put there by something else is compiled again, never loaded.
No torch.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from inference.kernels.unavailable import UnavailableError
from inference.storage.atomic_write import replace_file
from inference.storage.folders import CACHE_VARIABLE

PREFIX = "kernels-"
DIGEST_SUFFIX = ".sha256"
OWNER_ONLY = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Source: our own choice. Three formats of weights; machines with other processors may share a home.
KEPT_VERSIONS = 12

Make = Callable[[Path], None]


def kept_library(folder: Path, key: str, make: Make) -> Path:
    """Return the library of a key, made and kept unless a whole one of this user's own is there.

    Args:
        folder: Where libraries are kept; made for this user alone when it is missing.
        key: What the library depends on.
        make: Writes the library to the path it is given, in a folder of its own.

    Raises:
        UnavailableError: The folder is not this user's or cannot be written, or ``make`` failed.
    """
    try:
        folder = _own_folder(folder)
        path = folder / f"{PREFIX}{key}.so"
        if not is_trusted(path):
            with tempfile.TemporaryDirectory(dir=folder) as workplace:
                made = Path(workplace) / "kernels.so"
                make(made)
                _keep(made, path)
            _remove_old(folder)
        path.touch()  # the order of last use, see _remove_old
    except OSError as error:
        msg = f"the kernels cannot be kept in {folder}: {error.strerror}; set {CACHE_VARIABLE} to "
        msg += "another folder"
        raise UnavailableError(msg) from error
    return path


def is_trusted(path: Path) -> bool:
    """True for a library that only this user can have written, whole as it was compiled."""
    digest_path = _digest_path(path)
    try:
        if not (_is_own_file(path) and _is_own_file(digest_path)):
            return False
        return digest_path.read_text("ascii", errors="replace").strip() == _digest(path)
    except OSError:
        return False


def _own_folder(folder: Path) -> Path:
    """Return the folder without links, made if missing, closed to others if this user's.

    Raises:
        UnavailableError: It belongs to somebody else, or stays open to others.
        OSError: It cannot be made or closed, or is no folder.
    """
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    folder = folder.resolve()
    status = folder.stat()
    if status.st_uid != os.getuid():
        msg = f"the folder {folder} belongs to another user; set {CACHE_VARIABLE} to one of your "
        msg += "own"
        raise UnavailableError(msg)
    if status.st_mode & OTHERS_WRITE:
        # Others may have put files here, so what is kept is compiled again.
        for path in folder.glob(f"{PREFIX}*"):
            path.unlink()
        folder.chmod(OWNER_ONLY)
        if folder.stat().st_mode & OTHERS_WRITE:  # a file system without modes
            msg = f"the folder {folder} cannot be closed to other users; set {CACHE_VARIABLE} to "
            msg += "one that can"
            raise UnavailableError(msg)
    return folder


def _is_own_file(path: Path) -> bool:
    status = path.lstat()
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.getuid()
        and not status.st_mode & OTHERS_WRITE
    )


def _keep(made: Path, path: Path) -> None:
    """Move a library to its place, its digest first: without it the library is not loaded."""
    made.chmod(OWNER_ONLY)  # the linker's file has the user's ordinary mode
    digest_path = _digest_path(path)
    replace_file(digest_path, _digest(made).encode())
    digest_path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    made.replace(path)


def _remove_old(folder: Path) -> None:
    """Remove all libraries but those used last; one that is loaded somewhere stays usable there."""
    libraries = sorted(folder.glob(f"{PREFIX}*.so"), key=lambda path: path.lstat().st_mtime)
    for path in libraries[:-KEPT_VERSIONS]:
        path.unlink(missing_ok=True)
        _digest_path(path).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest_path(path: Path) -> Path:
    return path.with_name(path.name + DIGEST_SUFFIX)
