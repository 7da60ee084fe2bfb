"""How much room kept runs may take, and which make room for others. No torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inference.records.errors import InputError

ROOM_VARIABLE = "TOKEN_BY_TOKEN_RUNS_MB"
# Source: our own choice: some fifty thousand short runs, and little of a disk.
DEFAULT_MB = 5000
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRoom:
    """The room of kept runs.

    Attributes:
        used_bytes: All that their folder holds, deleted runs that can be restored included.
        most_bytes: What it may hold; None for any amount.
        removed: Runs that made room for others since the program's start.
        removed_bytes: What those took.
    """

    used_bytes: int
    most_bytes: int | None
    removed: int = 0
    removed_bytes: int = 0

    @property
    def excess_bytes(self) -> int:
        """How much more there is than there may be."""
        return 0 if self.most_bytes is None else max(0, self.used_bytes - self.most_bytes)


def room_from_environment() -> int | None:
    """Return how many bytes kept runs may take; None for any amount.

    Raises:
        InputError: The variable holds no number of megabytes.
    """
    value = os.environ.get(ROOM_VARIABLE, "").strip()
    if not value:
        return DEFAULT_MB * MEGABYTE
    if not (value.isascii() and value.isdigit()) or len(value) > len(str(2**63)):
        msg = f"{ROOM_VARIABLE} is {value[:40]!r}; give whole megabytes, or 0 for no limit"
        raise InputError(msg)
    return int(value) * MEGABYTE or None


def remove_oldest(files: Iterable[Sequence[Path]], excess_bytes: int) -> tuple[int, int]:
    """Remove the oldest until an excess is gone, and return how many went and what they took.

    Args:
        files: Those that go together, the one with the date at the front.
        excess_bytes: What has to go.
    """
    dated: list[tuple[int, int, Sequence[Path]]] = []
    for paths in files:
        with suppress(OSError):  # removed by another program
            # Of a link itself, since no more goes with it.
            size = sum(path.lstat().st_size for path in paths if os.path.lexists(path))
            dated.append((paths[0].lstat().st_mtime_ns, size, paths))
    removed = removed_bytes = 0
    for _modified_ns, size, paths in sorted(dated):
        if removed_bytes >= excess_bytes:
            break
        with suppress(OSError):  # it may not be removed; another may
            for path in paths:
                path.unlink(missing_ok=True)
            removed += 1
            removed_bytes += size
    return removed, removed_bytes


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder; those that vanish meanwhile count nothing."""
    total, folders = 0, [os.fspath(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as items:
            for item in items:
                with suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        folders.append(item.path)
                    else:
                        total += item.stat(follow_symlinks=False).st_size
    return total
