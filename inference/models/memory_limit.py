"""The memory limit of a container or a service manager, read from control groups. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


class MemoryLimit:
    """The lowest memory limit that a container or a service manager puts on this process.

    Attributes:
        total_bytes: The limit; None when there is none.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        """Look through the control groups of this process.

        Args:
            root: Where ``proc`` and ``sys`` are.
        """
        self.total_bytes: int | None = None
        self._group: Path | None = None
        for group in _memory_groups(root):
            limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
            if limit is not None and (self.total_bytes is None or limit < self.total_bytes):
                self.total_bytes, self._group = limit, group

    def used_bytes(self) -> int | None:
        """Return the memory in use under the limit, less file pages that can be dropped at once."""
        if self._group is None:
            return None
        used = _number(self._group / "memory.current")
        if used is None:
            used = _number(self._group / "memory.usage_in_bytes")
        if used is None:
            return None
        return max(0, used - _droppable_bytes(self._group))


def _memory_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's memory control groups, innermost first.

    Source:
        Linux kernel, admin-guide/cgroup-v2 ("0::path") and cgroup-v1/memory ("n:memory:path").
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        mount = root / "sys/fs/cgroup"
        if "memory" in controllers.split(","):
            mount = mount / "memory"
        elif number != "0":
            continue
        group = mount / path.lstrip("/")
        yield group
        yield from (parent for parent in group.parents if parent.is_relative_to(mount))


def _droppable_bytes(group: Path) -> int:
    """Return the bytes of a group's cached files that were not used lately."""
    try:
        lines = (group / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    stat = dict(line.split(maxsplit=1) for line in lines if " " in line)
    return int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))


def _number(path: Path) -> int | None:
    """Return the integer in a file; None when there is no such file, or no number in it."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
