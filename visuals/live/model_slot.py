"""The one model of the engine as the app process knows it: held, being loaded, or refused.

Belongs to the hub, whose lock is held by whoever changes it. ``held`` is replaced as a whole, so it
may be read without the lock. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inference.models.tokenization import TextCodec
from inference.process.messages import Command, LoadModel, ModelReady
from inference.process.orders import RunOrder, build_requests
from inference.records.run import Request
from inference.records.status import LoadStage


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """What the engine is doing about its model, for a page that waits.

    Attributes:
        ready: The model held; None while there is none.
        stage: What is being loaded; None when nothing is.
        error: Why the last load failed; empty when it did not.
    """

    ready: ModelReady | None
    stage: LoadStage | None
    error: str


@dataclass(frozen=True, slots=True)
class HeldModel:
    """A model that the engine holds, with its text codec."""

    ready: ModelReady
    codec: TextCodec

    def requests(self, order: RunOrder) -> tuple[Request, ...]:
        """Return what the engine is fed for an order; it may take seconds, so without a lock.

        Raises:
            PromptError, InputError: It cannot be run on this model.
        """
        return build_requests(order, self.codec, self.ready.context_limit)


class ModelSlot:
    """What is known of the engine's model.

    Attributes:
        held: The model that is there; None while there is none.
        loading: The model asked for that is not there yet.
        stage: How far loading it is, or preparing a run.
    """

    def __init__(self, send: Callable[[Command], None]) -> None:
        self._send = send
        self.clear()

    def clear(self, error: str = "") -> None:
        """Record that there is no model, and why not."""
        self.held: HeldModel | None = None
        self.loading: LoadModel | None = None
        self.stage: LoadStage | None = None
        self._error = error

    def load(self, command: LoadModel) -> None:
        """Ask the engine for a model; the one before goes."""
        self.clear()
        self.loading, self.stage = command, LoadStage(stage="starting the engine")
        self._send(command)

    def hold(self, model: HeldModel) -> None:
        """Take the model that was loaded."""
        self.clear()
        self.held = model

    def held_for(self, command: LoadModel) -> HeldModel | None:
        """Return the model held if it is the one asked for, else None."""
        held = self.held
        return held if held is not None and held.ready.request == command else None

    def status(self) -> EngineStatus:
        """Return what the engine holds or is loading."""
        return EngineStatus(
            ready=self.held.ready if self.held is not None else None,
            stage=self.stage if self.loading is not None else None,
            error=self._error,
        )
