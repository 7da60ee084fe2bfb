"""An engine that died: whether another is started with its model, and what pages say of it.

Belongs to the hub, whose lock is held by whoever changes it. ``words`` is replaced as a whole, so
it may be read without the lock. No torch.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

RESTARTS = 3  # in so long; one that dies more often would only die again
WITHIN_S = 600.0


@dataclass(slots=True)
class EngineRestarts:
    """Counts the engine's deaths.

    Attributes:
        now: The time, in seconds.
        words: What happened to the engine since the newest run began; empty where nothing did.
    """

    now: Callable[[], float]
    words: str = ""
    _died_s: deque[float] = field(default_factory=deque)

    def died(self, doing: str, exit_code: int | None, *, has_model: bool) -> bool:
        """Take it that the engine is gone; tell whether to start another with the same model.

        Args:
            doing: What it was doing, as in "while it was idle".
            exit_code: Of its process.
            has_model: It held a model.
        """
        now_s = self.now()
        self._died_s.append(now_s)
        while now_s - self._died_s[0] > WITHIN_S:
            self._died_s.popleft()
        is_again = has_model and len(self._died_s) <= RESTARTS
        what = f"The engine process ended unexpectedly {doing} ({exit_words(exit_code)})."
        if is_again:
            self.words = f"{what} It was restarted, and the model is loaded again."
        elif has_model:
            self.words = f"{what} It has ended {len(self._died_s)} times within "
            self.words += f"{WITHIN_S / 60:.0f} minutes, so it is restarted with the next run."
        else:
            self.words = f"{what} It is restarted with the next run."
        return is_again

    def was_ended(self, words: str) -> None:
        """Take it that the engine was ended here, since it did not answer."""
        self.words = words

    def forget(self) -> None:
        """Say nothing more of it: a run has begun."""
        self.words = ""


def exit_words(exit_code: int | None) -> str:
    """Return what an exit code says: a process killed from outside often was out of memory."""
    if exit_code is not None and -exit_code == signal.SIGKILL:
        return f"exit code {exit_code}: killed, by a system short of memory perhaps"
    return f"exit code {exit_code}"
