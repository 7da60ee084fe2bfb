"""The self-check of the model held, as the app process knows it: done, on its way, or ended early.

Belongs to the hub, whose lock is held by whoever calls. ``status`` is replaced as a whole, so it
may be read without the lock. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inference.process.messages import Checked, CheckFailed, CheckModel, Command
from inference.records.checks import SelfCheck

NOT_KEPT = "the result could not be written to the cache folder, so it holds until the end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheckStatus:
    """What is known of the model held.

    Attributes:
        check: As far as it is; None before the first result, and without a model.
        is_going: The engine checks whenever it is idle.
        sentence: Why there is no whole result, or what else must be known; empty when all is well.
    """

    check: SelfCheck | None = None
    is_going: bool = False
    sentence: str = ""


@dataclass(slots=True)
class ModelChecks:
    """Follows the engine's check."""

    send: Callable[[Command], None]
    status: ModelCheckStatus = field(default_factory=ModelCheckStatus)

    def model_is_held(self, check: SelfCheck | None) -> None:
        """Take another model, with the check kept for it; the engine makes one where none is."""
        is_going = check is None or check.is_cut_short
        self.status = ModelCheckStatus(check=check, is_going=is_going)

    def no_model(self, sentence: str = "") -> None:
        """Take it that no model is held, and why not."""
        self.status = ModelCheckStatus(sentence=sentence)

    def order(self) -> None:
        """Ask for a check anew."""
        self.status = ModelCheckStatus(is_going=True)
        self.send(CheckModel())

    def receive(self, reply: Checked | CheckFailed) -> None:
        """Take what the engine says of it."""
        if isinstance(reply, CheckFailed):
            self.status = ModelCheckStatus(check=self.status.check, sentence=reply.sentence)
            return
        self.status = ModelCheckStatus(
            check=reply.check,
            is_going=not reply.check.is_whole,
            sentence="" if reply.is_kept else NOT_KEPT,
        )
