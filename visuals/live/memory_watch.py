"""How near engine and app are to the memory that they may take, and what pages say of it.

Looked at once a second by the hub's thread. Beyond its share an engine's allocation fails, which
ends a run with a sentence; the app takes no more runs once it is nearly there. ``words`` and
``is_full`` are replaced as a whole, so they may be read without a lock. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inference.models.process_memory import MEMORY_VARIABLE, MemoryShares, held_bytes

NEAR, FULL = 0.85, 0.97  # of a share
NO_SHARES = MemoryShares(engine_bytes=None, app_bytes=None)


@dataclass(slots=True)
class MemoryWatch:
    """Follows two processes.

    Attributes:
        shares: What they may take.
        held: Returns what a process holds by its id, this one's for None; None where it is unknown.
        words: What pages say; empty while there is room.
        is_full: The app has no room for another run.
    """

    shares: MemoryShares = NO_SHARES
    held: Callable[[int | None], int | None] = held_bytes
    words: str = ""
    is_full: bool = False
    is_app_near: bool = field(default=False, init=False)

    def look(self, engine_id: int | None) -> None:
        """Read what both hold.

        Args:
            engine_id: The engine's process; None while there is none.
        """
        app = self.held(None)
        engine = None if engine_id is None else self.held(engine_id)
        self.is_app_near = _ratio(app, self.shares.app_bytes) >= NEAR
        self.is_full = _ratio(app, self.shares.app_bytes) >= FULL
        said: list[str] = []
        if self.is_app_near:
            more = "takes no more runs" if self.is_full else "soon takes no more runs"
            said.append(
                f"The server holds {_of(app, self.shares.app_bytes)} and {more}: close tabs that "
                "nobody needs, or start it anew."
            )
        if _ratio(engine, self.shares.engine_bytes) >= NEAR:
            said.append(
                f"The engine holds {_of(engine, self.shares.engine_bytes)}: a run that needs more "
                "ends with a sentence; use shorter prompts, fewer rows or a smaller model."
            )
        if said:
            said.append(f"{MEMORY_VARIABLE} sets what they may take.")
        self.words = " ".join(said)


def _ratio(held: int | None, share: int | None) -> float:
    return 0.0 if held is None or not share else held / share


def _of(held: int | None, share: int | None) -> str:
    # To two digits, so that a page is not told something else every second.
    return f"{_gigabytes(held)} of the {_gigabytes(share)} GB of memory that it may take"


def _gigabytes(count: int | None) -> str:
    gigabytes = (count or 0) / 1e9
    return f"{gigabytes:.1f}" if gigabytes >= 1 else f"{gigabytes:.2f}"
