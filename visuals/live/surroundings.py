"""What the hub works with: the engine process, the time, chat templates, observers. No torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from inference.models.chat_templates import Render, render_here
from inference.process.messages import Command
from inference.records.run import RunTrace
from visuals.live.live_run import RunObserver
from visuals.live.memory_watch import MemoryWatch

GRACE_S = 30.0  # covers a reload and a short network drop
PAUSE_LIMIT_S = 300.0  # time to explain a step to a room; the others have waited long enough then

RunApart = Callable[[Callable[[], None]], None]  # carries out work that takes long


class EngineLink(Protocol):
    """The engine process as the hub sees it; ``EngineClient`` is the real one."""

    @property
    def process_id(self) -> int | None:
        """The process; None while there is none."""
        ...

    def send(self, command: Command) -> None:
        """Send a command."""
        ...

    def kill(self) -> None:
        """End the process at once; its end is reported."""
        ...

    def retire(self) -> None:
        """Have the process end, and start another with the next command."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


def on_a_thread(work: Callable[[], None]) -> None:
    """Carry out work on a thread of its own."""
    threading.Thread(target=work, name="tokenize", daemon=True).start()


def _recall_nothing(_run_id: str) -> RunTrace | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the hub works with, beside the engine.

    Attributes:
        now: The time, in seconds.
        grace_s: How long a run may go unwatched.
        pause_limit_s: How long a paused run may hold up others; 0 for as long as it likes.
        render: Applies chat templates.
        recall: Finds a run that is kept elsewhere by its id; None when there is none.
        on_end: Called with each run that has ended, under the lock, so they must be quick.
        run_apart: Carries out work that takes long, on another thread.
        hold_s: How long a run may wait for its page to be drawn; 0 lets it begin at once.
        idle_limit_s: How long a model is held unused; 0 for as long as the server runs.
        memory: Says how near engine and app are to what they may take.
    """

    now: Callable[[], float] = time.monotonic
    grace_s: float = GRACE_S
    pause_limit_s: float = PAUSE_LIMIT_S
    render: Render = render_here
    recall: Callable[[str], RunTrace | None] = _recall_nothing
    on_end: tuple[RunObserver, ...] = ()
    run_apart: RunApart = on_a_thread
    hold_s: float = 0.0
    idle_limit_s: float = 0.0
    memory: MemoryWatch = field(default_factory=MemoryWatch)
