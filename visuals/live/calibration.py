"""Measurements that the engine makes between two runs: roofs, and the sweep over tokens.

One waits or goes at a time; runs wait meanwhile, except for what nobody asked for. Belongs to the
hub, whose lock is held by whoever calls. Nothing is measured in this process. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inference.process.messages import Command, Measure, MeasureEnded, Measuring, StopMeasuring
from inference.records.batches import BatchSweep
from inference.records.errors import InputError
from inference.records.rooflines import MeasuredCeilings, TokenSweep
from inference.records.status import LoadStage

NOT_KEPT = "measured, but it could not be written to the cache folder, so it holds until the end"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureStatus:
    """Where a measurement stands, and what was measured before.

    Attributes:
        kind: What waits or goes; None when nothing does.
        is_waiting: True while a run or a load goes first.
        stage: How far it is; None when it waits.
        ended: What ended last; None before anything has.
        sentence: How the last one ended when it did not simply succeed.
        ceilings: Of the device and dtype of the model held.
        sweep: Of the model held, made since it was loaded.
        batches: The newest sweep over batches, as far as it came, with the model it was made on.
        is_by_itself: Nobody asked for what waits or goes; it gives way to a run.
    """

    kind: type[Measure] | None = None
    is_waiting: bool = False
    stage: LoadStage | None = None
    ended: type[Measure] | None = None
    sentence: str = ""
    ceilings: MeasuredCeilings | None = None
    sweep: TokenSweep | None = None
    batches: BatchSweep | None = None
    is_by_itself: bool = False


@dataclass(slots=True)
class Measurements:
    """The measurement that waits or goes, and the results."""

    send: Callable[[Command], None]
    status: MeasureStatus = field(default_factory=MeasureStatus)
    _wanted: Measure | None = None
    _going: Measure | None = None
    _on_way_given: Callable[[], None] | None = None
    _gives_way: bool = False

    @property
    def is_going(self) -> bool:
        """True while the engine measures."""
        return self._going is not None

    def order(
        self,
        command: Measure,
        *,
        by_itself: bool = False,
        on_way_given: Callable[[], None] | None = None,
    ) -> None:
        """Remember what is wanted; ``begin`` starts it.

        Args:
            command: What is to be measured.
            by_itself: Nobody asked for it, so it gives way to runs.
            on_way_given: Called once it has ended for a run, without a result.

        Raises:
            InputError: One waits or goes already.
        """
        if self._wanted is not None or self._going is not None:
            msg = "a measurement is already in progress; wait for it to end, or stop it"
            raise InputError(msg)
        self._wanted = command
        self._on_way_given, self._gives_way = on_way_given, False
        self.status = replace(
            self.status,
            kind=type(command),
            is_waiting=True,
            is_by_itself=by_itself,
            sentence="",
        )

    def begin(self) -> None:
        """Send what is wanted, if anything is, to the idle engine."""
        command, self._wanted = self._wanted, None
        if command is None:
            return
        self._going = command
        stage = LoadStage(stage="getting ready", ratio=0.0)
        self.status = replace(self.status, is_waiting=False, stage=stage)
        self.send(command)

    def stop(self) -> None:
        """End the measurement that goes, or forget the one that waits."""
        if self._going is not None:
            self.send(StopMeasuring())
        elif self._wanted is not None:
            self._wanted = None
            self._over("stopped before it began")

    def give_way(self) -> None:
        """End what nobody asked for, since somebody asks for something else."""
        if self.status.is_by_itself and self._going is not None and not self._gives_way:
            self._gives_way = True
            self.send(StopMeasuring())

    def receive(self, reply: Measuring | MeasureEnded) -> None:
        """Take what the engine says of it."""
        if reply.batches is not None:
            self.status = replace(self.status, batches=reply.batches)
        if isinstance(reply, Measuring):
            self.status = replace(self.status, stage=reply.stage)
            return
        if reply.ceilings is not None:
            self.status = replace(self.status, ceilings=reply.ceilings)
        if reply.sweep is not None:
            self.status = replace(self.status, sweep=reply.sweep)
        if self._gives_way and reply.ceilings is None:
            self._over("")
            if self._on_way_given is not None:
                self._on_way_given()
            return
        self._over(reply.sentence or ("" if reply.is_kept else NOT_KEPT))

    def died(self, sentence: str) -> None:
        """Take it that the engine is gone."""
        if self._going is not None:
            self._over(sentence)

    def model_is_held(self, ceilings: MeasuredCeilings | None) -> None:
        """Take another model, with the roofs kept for its device and dtype."""
        self.status = replace(self.status, ceilings=ceilings, sweep=None)

    def _over(self, sentence: str) -> None:
        self._going = None
        self.status = replace(
            self.status,
            kind=None,
            is_waiting=False,
            is_by_itself=False,
            stage=None,
            ended=self.status.kind,
            sentence=sentence,
        )
