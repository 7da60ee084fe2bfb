"""Files under a name that a user gave: written to where the name leads, and never replaced by more.

A link stays a link and what it leads to gets the new content. A pipe or a device is written to as
it is, so ``/dev/null`` stays what it was. No torch.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from inference.records.errors import InputError
from inference.storage.atomic_write import replace_file


def check_named_file(path: Path) -> None:
    """Raise InputError unless a file of this name can be written; nothing is opened or made."""
    try:
        target, state = _target(path)
    except (OSError, ValueError) as error:  # a loop of links, a name too long, a null byte
        raise InputError(_complaint(path, error)) from error
    if state is not None and stat.S_ISDIR(state.st_mode):
        msg = f"{path} is a folder and cannot be written as a file; give the name of one"
        raise InputError(msg)
    if state is not None and not _is_replaced(state):
        _check_special(path, target, state)
        return
    if not target.parent.is_dir():
        msg = f"the folder {target.parent} does not exist; create it or write elsewhere"
        raise InputError(msg)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        msg = f"the folder {target.parent} may not be written; choose another folder"
        raise InputError(msg)


def write_named_file(path: Path, content: bytes) -> None:
    """Write a file under a user's name for it, in one stroke where it is an ordinary file.

    Raises:
        InputError: It is no file that can be written.
        OSError: There is no room, or it may not be written.
    """
    check_named_file(path)
    target, state = _target(path)
    if state is None or _is_replaced(state):
        replace_file(target, content)
        return
    # Neither made nor emptied where the thing went away meanwhile, or is none to empty.
    flags = os.O_WRONLY | os.O_CLOEXEC
    if stat.S_ISREG(state.st_mode):
        flags |= os.O_TRUNC
    with os.fdopen(os.open(target, flags), "wb") as file:
        file.write(content)


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return where a name leads, links followed, and the state of what is there; None for none."""
    target = Path(os.path.realpath(path))
    try:
        return target, target.stat()
    except FileNotFoundError:
        return target, None


def _is_replaced(state: os.stat_result) -> bool:
    """Return whether this is an ordinary file under one name, so that another may take its place.

    A file of several names would keep its old content under the others.
    """
    return stat.S_ISREG(state.st_mode) and state.st_nlink == 1


def _check_special(path: Path, target: Path, state: os.stat_result) -> None:
    """Raise InputError unless something that is no ordinary file takes what is written to it."""
    if stat.S_ISBLK(state.st_mode) or stat.S_ISSOCK(state.st_mode):
        kind = "a disk" if stat.S_ISBLK(state.st_mode) else "a socket"
        msg = f"{path} is {kind}; give the name of a file to write"
        raise InputError(msg)
    if not os.access(target, os.W_OK):
        msg = f"{path} may not be written; choose another file"
        raise InputError(msg)


def _complaint(path: Path, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{path} cannot be written: {reason}; give the name of a file to write"
