"""How much memory a process of this program holds, and the limits it is held to. No torch.

The engine may take a share of the machine's memory, and the app a smaller one. Linux holds a
process to its limit: an allocation beyond it fails, which ends a run with a sentence, where without
a limit the system ends some process, this one or another's. What is not Linux has no such limit.

Source:
    Linux, man 2 getrlimit (RLIMIT_DATA counts private writable pages since 4.7) and man 5 proc.
"""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from inference.models.memory_limit import MemoryLimit
from inference.records.errors import InputError

MEMORY_VARIABLE = "TOKEN_BY_TOKEN_MEMORY_MB"
MEGABYTE = 1_000_000
NAMES = ("engine", "app")
# Chosen: enough for a model that is most of the machine, and something left to the system.
ENGINE_SHARE = 0.8
APP_SHARE = 0.2
LEAST_APP_BYTES = 1_000 * MEGABYTE  # the app alone takes some 400 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShares:
    """What the two processes may take; None for as much as there is."""

    engine_bytes: int | None
    app_bytes: int | None


def shares_from(text: str | None = None, machine: int | None = None) -> MemoryShares:
    """Return what engine and app may take, as the user gives it or by the machine's memory.

    Args:
        text: Megabytes such as ``engine=8000,app=2000``, 0 for no limit; the environment's unless
            given.
        machine: Bytes of memory there are; this machine's unless given.

    Raises:
        InputError: A name is none of the two, or a value no number of megabytes.
    """
    given = os.environ.get(MEMORY_VARIABLE, "") if text is None else text
    total = machine_bytes() if machine is None else machine
    shares = {
        "engine": int(total * ENGINE_SHARE) or None,
        "app": max(int(total * APP_SHARE), LEAST_APP_BYTES) if total else None,
    }
    for part in filter(None, (one.strip() for one in given.split(","))):
        name, _, value = (one.strip() for one in part.partition("="))
        if name not in NAMES or not (value.isascii() and value.isdigit() and len(value) <= 12):  # noqa: PLR2004  a million million
            msg = f"{part[:40]!r} is no limit of memory; {MEMORY_VARIABLE} takes engine and app, "
            msg += "each with = and whole megabytes, parted by a comma; 0 for none"
            raise InputError(msg)
        shares[name] = int(value) * MEGABYTE or None
    return MemoryShares(engine_bytes=shares["engine"], app_bytes=shares["app"])


def machine_bytes() -> int:
    """Return the memory of this machine, or of the container that it is; 0 where unknown."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
    limit = MemoryLimit().total_bytes
    return total if limit is None else min(total, limit)


def held_bytes(process_id: int | None = None) -> int | None:
    """Return the memory that a process holds, file pages left out; None where nothing tells.

    Args:
        process_id: Of another process; this one's unless given.
    """
    status = _status(process_id)
    return status.get("RssAnon", status.get("VmRSS"))


def limit_growth(spare_bytes: int) -> None:
    """Let this process, and those it starts, take so much more memory than it has now."""
    used = _status(None).get("VmData")
    if used is not None:
        _set_limit(used + max(0, spare_bytes))


def lift_limit() -> None:
    """Let this process take as much memory as the one that started it was let."""
    _set_limit(None)


def room_bytes() -> int | None:
    """Return how much more memory this process may take; None where it has no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    used = _status(None).get("VmData")
    if soft == resource.RLIM_INFINITY or used is None:
        return None
    return max(0, soft - used)


def _set_limit(most_bytes: int | None) -> None:
    """Set the limit that may be changed again; the system's own above it stands."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = hard if most_bytes is None else most_bytes
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _status(process_id: int | None) -> dict[str, int]:
    """Return the sizes of a process in bytes by the system's names; empty where there are none."""
    name = "self" if process_id is None else str(process_id)
    try:
        lines = Path(f"/proc/{name}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    rows = (line.split() for line in lines.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if row[-1:] == ["kB"]}
