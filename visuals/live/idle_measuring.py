"""The roofs measured by themselves: once the engine is idle, and given way to a run at once.

Whatever number format the model held has, its roofs are measured when there are none. Belongs to
the hub, whose lock is held by whoever calls. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inference.process.messages import MeasureCeilings
from inference.records.model import Device
from visuals.live.run_queue import RunQueue

IDLE_S = 3.0  # Chosen: a page that has just opened is drawn by then
QUIET_RATIO = 0.5  # of all processors; a browser that draws takes more of two
LONGEST_WAIT_S = 60.0  # for a quiet machine; after that roofs of a busy one are better than none


@dataclass(slots=True)
class IdleMeasuring:
    """Starts the measurement of roofs that are missing.

    Attributes:
        queue: What the engine has to do besides.
        now: The time, in seconds.
    """

    queue: RunQueue
    now: Callable[[], float]
    _idle_since_s: float | None = None
    _begun: set[Device] = field(default_factory=set)

    def tick(self, machine_busy: float) -> None:
        """Begin the measurement if it is due; called about once a second.

        Args:
            machine_busy: How busy all processors were since the last call, 0 to 1.
        """
        if not self._is_wanted:
            self._idle_since_s = None
            return
        now_s = self.now()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        idle_s = now_s - self._idle_since_s
        is_quiet = machine_busy < QUIET_RATIO
        if idle_s < IDLE_S or not (is_quiet or idle_s > LONGEST_WAIT_S):
            return
        self._begin()

    @property
    def _is_wanted(self) -> bool:
        """True while the roofs of the model held are missing and nothing else is to be done."""
        held, measurements = self.queue.model.held, self.queue.measurements
        if held is None or measurements.status.ceilings is not None:
            return False
        if measurements.status.kind is not None or not self.queue.is_idle:
            return False
        return not self.queue.registry.waiting and held.ready.device not in self._begun

    def _begin(self) -> None:
        held, measurements = self.queue.model.held, self.queue.measurements
        if held is None:
            return
        self._begun.add(held.ready.device)
        self._idle_since_s = None
        measurements.order(
            MeasureCeilings(), by_itself=True, on_way_given=lambda: self._forget(held.ready.device)
        )
        self.queue.advance()

    def _forget(self, device: Device) -> None:
        """Measure later what has given way to a run."""
        self._begun.discard(device)
