"""The one model of the engine as the app process knows it: held, coming, or refused.

Belongs to the hub, whose lock is held by whoever calls. No torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from inference.models.tokenization import TextCodec
from inference.process.messages import Command, LoadModel, ModelReady
from inference.process.orders import RunOrder, build_requests
from inference.records.errors import InputError, TokenByTokenError
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


class ModelSlot:
    """What is known of the engine's model.

    Attributes:
        ready: The model held; None while there is none.
        codec: Its text codec.
        loading: What was asked for and has not come yet.
        stage: How far it is, or how far the preparing of a run is.
    """

    def __init__(self, send: Callable[[Command], None]) -> None:
        self._send = send
        self.clear()

    def clear(self, error: str = "") -> None:
        """Take it that there is no model, and why not."""
        self.ready: ModelReady | None = None
        self.codec: TextCodec | None = None
        self.loading: LoadModel | None = None
        self.stage: LoadStage | None = None
        self._error = error

    def load(self, command: LoadModel) -> None:
        """Ask the engine for a model; the one before goes."""
        self.clear()
        self.loading, self.stage = command, LoadStage(stage="starting the engine")
        self._send(command)

    def hold(self, ready: ModelReady, codec: TextCodec) -> None:
        """Take the model that was loaded."""
        self.clear()
        self.ready, self.codec = ready, codec

    def holds(self, command: LoadModel) -> bool:
        """Tell whether the model held is the one asked for."""
        return self.ready is not None and self.ready.request == command

    def status(self) -> EngineStatus:
        """Return what the engine holds or is loading."""
        stage = self.stage if self.loading is not None else None
        return EngineStatus(ready=self.ready, stage=stage, error=self._error)

    def requests(self, order: RunOrder) -> tuple[Request, ...]:
        """Return what the engine is fed for an order on the model held.

        Raises:
            PromptError, InputError: It cannot be run on this model.
        """
        if self.codec is None or self.ready is None:
            msg = "no model is loaded"
            raise InputError(msg)
        return build_requests(order, self.codec, self.ready.context_limit)


def codec_of(ready: ModelReady) -> TextCodec:
    """Return a model's text codec, ready to render; it takes a second or two, so without a lock.

    Raises:
        TokenByTokenError: Its tokenizer cannot be used.
    """
    codec = TextCodec.from_files(ready.tokenizer_files)
    with contextlib.suppress(TokenByTokenError):  # a template may refuse an empty prompt
        codec.templated("")  # the first call imports the renderer; nobody waits for it here
    return codec
