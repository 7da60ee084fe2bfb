"""One run of the registry: what was asked, what came of it so far, and who watches.

From when the hub has it, its fields change under the hub's lock only: pages, the saver and the
routes go through the hub. No torch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from inference.models.tokenization import TextCodec
from inference.process.messages import Control, RunStarted, Sampled, StateChanged, Stepped
from inference.process.orders import RunOrder
from inference.records.run import Request, RunTrace
from inference.records.status import RunState
from inference.records.telemetry import Unavailable
from inference.runs.trace_builder import Recording
from visuals.live.looks import Looks
from visuals.live.model_slot import HeldModel
from visuals.live.page_hold import PageHold
from visuals.live.playback import Replay

RunObserver = Callable[["LiveRun"], None]


def new_token() -> str:
    """Return a secret that the live route asks for."""
    return secrets.token_urlsafe(16)


def new_id() -> str:
    """Return an id that no other run has."""
    return secrets.token_urlsafe(6)


@dataclass(slots=True, kw_only=True)
class LiveRun:
    """One run in the registry.

    Attributes:
        token: Secret that the live route asks for.
        requests: What the engine is fed; empty until the prompts are tokenised.
        tokenized_by: The model whose tokenizer made ``requests``; None until then.
        recorded: The finished trace of a run that was opened from a file; None for a run made here.
        early_controls: Steps, pauses and paces asked for before the engine took the run up.
        replay: How far a recorded run that plays again has come; None for all others.
        on_end: Called with the run when it has ended, under the hub's lock, so it must be quick.
        was_watched: A viewer has come; until then its page may still be on its way.
        stop_reason: Why the program stopped it; empty when it did not.
        patience: How many grace times it may go unwatched.
        is_kept: False for a run that is no use on disk, such as a warm-up.
        is_unwritten: It ended and found no room on disk: memory has the only whole copy.
        steps_per_s: The pace asked for last; None for as fast as it goes.
        notice: What the viewer must know while the run goes on; empty when all is well.
        split_every: One step in this many is timed in parts; None when none is.
        hold: What it waits for before its first step.
        looks: The newest look at it, which its viewers share.
        owner: The visitor who asked for it; empty where visitors are not told apart.
    """

    run_id: str = field(default_factory=new_id)
    token: str = field(default_factory=new_token)
    order: RunOrder | None
    state: RunState
    message: str = ""
    requests: tuple[Request, ...] = ()
    tokenized_by: HeldModel | None = None
    recording: Recording | None = None
    recorded: RunTrace | None = None
    unavailable: tuple[Unavailable, ...] = ()
    viewers: int = 0
    last_seen_s: float = 0.0
    was_watched: bool = False
    is_abandoned: bool = False
    stop_reason: str = ""
    on_end: RunObserver | None = None
    early_controls: list[Control] = field(default_factory=list)
    replay: Replay | None = None
    patience: int = 1
    is_kept: bool = True
    is_unwritten: bool = False
    steps_per_s: float | None = None
    notice: str = ""
    split_every: int | None = None
    hold: PageHold = field(default_factory=PageHold)
    looks: Looks = field(default_factory=Looks)
    owner: str = ""

    @classmethod
    def of(cls, order: RunOrder) -> LiveRun:
        """Return a run of this order, neither tokenised nor queued."""
        return cls(order=order, state=RunState.QUEUED, steps_per_s=order.steps_per_s)

    def snapshot(self) -> RunTrace | None:
        """Return the run so far; None before the engine took it up."""
        if self.recorded is not None:
            return self.recorded
        if self.replay is not None:
            shown = self.replay.snapshot()
            self.state, self.message = self.replay.state, shown.message
            return shown
        if self.recording is None:
            return None
        return self.recording.snapshot(self.state, self.message, self.unavailable)

    @property
    def is_held(self) -> bool:
        """True while the run, described already, waits for its page to be drawn."""
        return self.hold.is_on and self.recording is not None and not self.state.is_final

    @property
    def is_over(self) -> bool:
        """True when no step will follow, or all were made before."""
        return self.recorded is not None or self.replay is not None or self.state.is_final

    @property
    def finished(self) -> RunTrace | None:
        """The whole of a run that is over, a recorded one included; None while it goes."""
        if self.recorded is not None:
            return self.recorded
        if self.replay is not None:
            return self.replay.trace
        return self.snapshot() if self.state.is_final else None

    @property
    def attention_key(self) -> str:
        """Under what its attention weights are kept: a run that plays again shares its trace's."""
        return f"trace-{id(self.replay.trace)}" if self.replay is not None else self.run_id

    def let_go(self) -> None:
        """Forget the tokenizer of a run that has ended; many runs of many models are kept."""
        self.tokenized_by = None
        if self.recording is not None:
            self.recording.close()

    def advance(self) -> None:
        """Let a run that plays again come as far as it should be by now."""
        if self.replay is not None:
            self.replay.advance()
            self.state = self.replay.state

    def receive(
        self, reply: RunStarted | StateChanged | Stepped | Sampled, codec: TextCodec
    ) -> None:
        """Take what the engine says of the run while it goes."""
        if isinstance(reply, RunStarted):
            self.recording = Recording(reply.info, self.requests, codec)
            if self.state in (RunState.QUEUED, RunState.LOADING):
                self.state = RunState.RUNNING
        elif isinstance(reply, StateChanged):
            self.state, self.hold.is_on = reply.state, False
        elif self.recording is not None and isinstance(reply, Stepped):
            self.recording.add(reply.event)
        elif self.recording is not None and isinstance(reply, Sampled):
            self.recording.add_sample(reply.sample)
