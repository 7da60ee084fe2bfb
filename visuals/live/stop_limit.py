"""How long the engine may take to heed a stop before it is taken for frozen and ended.

Any word of the engine begins the time anew, so a run that computes one chunk or step after another
ends by itself at the next of them. Belongs to the hub, whose lock is held by whoever calls. No
torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

STOP_LIMIT_S = 5.0
FROZEN = (
    f"stopped; the engine had not answered for {STOP_LIMIT_S:.0f} s, so it was ended and another "
    "one is started. What was recorded is kept"
)


@dataclass(slots=True)
class StopLimit:
    """Watches the stop that was asked for last.

    Attributes:
        now: The time, in seconds.
        is_ended: The engine was ended for it, and its end has not been reported yet.
    """

    now: Callable[[], float]
    is_ended: bool = False
    _since_s: float | None = field(default=None, init=False)

    def asked(self) -> None:
        """Take it that the engine was told to stop; a second time changes nothing."""
        if self._since_s is None:
            self._since_s = self.now()

    def heard(self) -> None:
        """Take it that the engine has said something."""
        if self._since_s is not None:
            self._since_s = self.now()

    def over(self) -> None:
        """Take it that nothing is to be stopped any more."""
        self._since_s, self.is_ended = None, False

    def is_overdue(self) -> bool:
        """Tell whether the engine is to be ended; once for each stop."""
        since_s = self._since_s
        if self.is_ended or since_s is None or self.now() - since_s < STOP_LIMIT_S:
            return False
        self.is_ended = True
        return True
