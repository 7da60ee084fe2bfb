"""What a model's files were when they were checked, so that a later change is noticed. No torch.

Size and date are compared at each load. Where only the date differs, as in a copy, the bytes
decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from inference.storage.atomic_write import replace_file

CHECKED_FILE = "checked.json"


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file as it was checked."""

    name: str
    file_bytes: int
    modified_ns: int
    sha256: str


def remember_checked(folder: Path, names: Sequence[str]) -> None:
    """Keep what the files of a folder are beside them.

    Raises:
        OSError: There is no room, or a file cannot be read.
    """
    files = [_as_it_is(folder / name) for name in names]
    replace_file(folder / CHECKED_FILE, _CHECKED.dump_json(files, indent=1))


def changed_file(folder: Path, *, reads_all: bool = False) -> str | None:
    """Return the name of a file that is not what was checked; None where all are.

    A folder that was filled before such a record was kept has none, and passes.

    Args:
        folder: Where the files are.
        reads_all: Compare the bytes of files whose size and date are the same, too.

    Raises:
        OSError: A file cannot be read.
    """
    try:
        checked = _CHECKED.validate_json((folder / CHECKED_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return CHECKED_FILE
    is_dated_anew = False
    for former in checked:
        state = (folder / former.name).stat()
        if state.st_size != former.file_bytes:
            return former.name
        is_touched = state.st_mtime_ns != former.modified_ns
        if is_touched or reads_all:
            if _as_it_is(folder / former.name).sha256 != former.sha256:
                return former.name
            is_dated_anew |= is_touched
    if is_dated_anew:
        with suppress(OSError):  # a folder that may not be written is read again the next time
            remember_checked(folder, [former.name for former in checked])
    return None


_CHECKED = TypeAdapter(list[CheckedFile])


def _as_it_is(path: Path) -> CheckedFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    state = path.stat()
    return CheckedFile(path.name, state.st_size, state.st_mtime_ns, digest)
