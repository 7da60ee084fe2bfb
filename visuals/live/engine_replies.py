"""What the engine says, brought to the run, the model or the measurement it is about. No torch."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from inference.models.chat_templates import Render
from inference.models.tokenization import TextCodec
from inference.process.messages import (
    Attended,
    CaptureRefused,
    Checked,
    CheckFailed,
    EngineDied,
    LoadFailed,
    Loading,
    LoadModel,
    MeasureEnded,
    Measuring,
    ModelReady,
    RecaptureEnded,
    Reply,
    RunEnded,
    RunStarted,
    Sampled,
    StateChanged,
    Stepped,
)
from inference.records.errors import TokenByTokenError
from inference.records.status import RunState
from visuals.live.engine_restarts import EngineRestarts, exit_words
from visuals.live.live_run import LiveRun
from visuals.live.model_slot import HeldModel
from visuals.live.run_queue import RunQueue
from visuals.live.stop_limit import FROZEN, StopLimit

log = logging.getLogger(__name__)

ENDED_HERE = "The engine did not answer when it was told to stop, so it was ended and restarted."


@dataclass(frozen=True, slots=True)
class EngineReplies:
    """Takes every reply, under the lock of the queue.

    Attributes:
        queue: Where the runs are, and all that a reply may be about.
        render: Applies the chat template of a model that was loaded.
        restarts: Says whether an engine that died is started anew.
        stops: Whether it was ended here, since it did not heed a stop.
    """

    queue: RunQueue
    render: Render
    restarts: EngineRestarts
    stops: StopLimit

    def receive(self, reply: Reply) -> None:
        """Take one reply; called on the client's reading thread."""
        self.stops.heard()
        if isinstance(reply, ModelReady):
            self._model_is_ready(reply)
            return
        with self.queue.lock:
            if isinstance(reply, Stepped | Sampled | RunStarted | StateChanged | RunEnded):
                self._receive_run(reply)
            elif isinstance(reply, Attended | CaptureRefused | RecaptureEnded):
                self._receive_attention(reply)
            elif isinstance(reply, Loading):
                self.queue.model.stage = reply.stage
            elif isinstance(reply, LoadFailed):
                self._loading_failed(reply.sentence)
            elif isinstance(reply, Measuring | MeasureEnded):
                self._receive_measurement(reply)
            elif isinstance(reply, Checked | CheckFailed):
                self._receive_check(reply)
            else:
                self._engine_died(reply)

    def _receive_attention(self, reply: Attended | CaptureRefused | RecaptureEnded) -> None:
        if isinstance(reply, RecaptureEnded):
            self.queue.captures.recaptured(reply)
            self.queue.advance()
        else:
            self.queue.captures.receive(reply)

    def _receive_measurement(self, reply: Measuring | MeasureEnded) -> None:
        self.queue.measurements.receive(reply)
        if isinstance(reply, MeasureEnded):
            self.stops.over()
        measured = reply.ceilings if isinstance(reply, MeasureEnded) else None
        if measured is not None:
            self.queue.registry.add_ceilings(measured)
        self.queue.advance()

    def _receive_check(self, reply: Checked | CheckFailed) -> None:
        self.queue.checks.receive(reply)
        if isinstance(reply, Checked):
            self.queue.registry.add_check(reply.check)

    def _receive_run(self, reply: Stepped | Sampled | RunStarted | StateChanged | RunEnded) -> None:
        queue = self.queue
        run, held = queue.registry.active, queue.model.held
        if isinstance(reply, RunStarted):
            self.restarts.forget()
        if run is None or held is None:
            return  # the last words of a run that is over
        if not isinstance(reply, RunEnded):
            run.receive(reply, held.codec)
            if isinstance(reply, RunStarted) and run.recording is not None:
                queue.captures.started(run.run_id, run.recording)
            return
        self.stops.over()
        run.unavailable = reply.unavailable
        queue.registry.active = None
        queue.finish(run, reply.state, reply.message)
        queue.advance()

    def _model_is_ready(self, reply: ModelReady) -> None:
        """Make the text codec, which takes a second, before taking the lock."""
        try:
            codec = TextCodec.from_files(reply.tokenizer_files, self.render)
        except TokenByTokenError as error:
            with self.queue.lock:
                self._loading_failed(str(error))
            return
        with self.queue.lock:
            self.queue.model.hold(HeldModel(reply, codec))
            self.queue.measurements.model_is_held(reply.ceilings)
            self.queue.checks.model_is_held(reply.check)
            self.queue.advance()

    def _loading_failed(self, sentence: str) -> None:
        queue = self.queue
        wanted = queue.model.loading
        queue.model.clear(error=sentence)
        waiting = queue.registry.waiting
        if waiting and wanted == _wanted(waiting[0]):
            queue.finish(waiting.popleft(), RunState.FAILED, sentence)
        queue.advance()

    def _engine_died(self, reply: EngineDied) -> None:
        queue = self.queue
        is_frozen = self.stops.is_ended
        self.stops.over()
        sentence = (
            FROZEN
            if is_frozen
            else f"the engine process ended unexpectedly ({exit_words(reply.exit_code)}); "
            "what was recorded is kept, and another engine is started"
        )
        log.error(sentence)
        doing = self._doing()
        queue.measurements.died(sentence)
        queue.checks.no_model(sentence)
        queue.captures.died()
        active = queue.registry.active
        held = queue.model.held
        is_again = self.restarts.died(doing, reply.exit_code, has_model=held is not None)
        if is_frozen:
            self.restarts.was_ended(ENDED_HERE)
        if queue.model.loading is not None:
            self._loading_failed(sentence)
            return
        queue.model.clear(error="" if is_again or held is None else self.restarts.words)
        queue.registry.active = None
        if active is not None:
            queue.finish(active, RunState.STOPPED if is_frozen else RunState.FAILED, sentence)
        if held is not None and is_again and not queue.registry.waiting:
            queue.model.load(held.ready.request)  # before a measurement that waits for the model
        queue.advance()

    def _doing(self) -> str:
        """Return what the engine is doing."""
        queue = self.queue
        if queue.model.loading is not None:
            return "while it loaded the model"
        if queue.registry.active is not None:
            return "during a run"
        return "while it measured" if queue.measurements.is_going else "while it was idle"


def _wanted(run: LiveRun) -> LoadModel | None:
    """Return the model a waiting run needs."""
    return run.order.load if run.order is not None else None
