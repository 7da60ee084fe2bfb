"""The model put away while nobody wants anything of it, and back with the next thing anybody does.

A model keeps its memory, and that of a GPU, as long as the server runs, over nights too. So once
nobody has used it for an hour the engine process ends, which gives back all it holds; whatever is
asked for next starts another with the same model, in as many seconds as at the start. Belongs to
the hub, whose lock is held by whoever calls. ``words`` may be read without it. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inference.process.messages import LoadModel
from visuals.live.run_queue import RunQueue

IDLE_S = 3600.0  # Chosen: longer than a lecture stands still, shorter than lunch and a meeting


@dataclass(slots=True)
class IdleModel:
    """Watches how long nothing was asked of the engine.

    Attributes:
        queue: What the engine has to do.
        now: The time, in seconds.
        limit_s: How long a model is held unused; 0 for as long as the server runs.
        retire: Has the engine process end.
    """

    queue: RunQueue
    now: Callable[[], float]
    limit_s: float
    retire: Callable[[], None]
    _used_s: float | None = None
    _away: LoadModel | None = None

    @property
    def words(self) -> str:
        """What pages say while the model is away; empty while it is there or comes."""
        model = self.queue.model
        if self._away is None or model.held is not None or model.loading is not None:
            return ""
        return (
            f"The model was put away after {_duration(self.limit_s)} without use, to free its "
            "memory. It comes back by itself with the next thing you do here."
        )

    def used(self) -> None:
        """Take it that somebody does something: a model that is away comes back."""
        self._used_s = self.now()
        away, self._away = self._away, None
        model = self.queue.model
        if away is not None and model.held is None and model.loading is None:
            model.load(away)

    def tick(self) -> None:
        """Put the model away if it is due; called about once a second."""
        now_s = self.now()
        queue = self.queue
        is_busy = not queue.is_idle or queue.registry.waiting or queue.measurements.status.kind
        if is_busy or self._used_s is None:
            self._used_s = now_s
            return
        held = queue.model.held
        if held is None or not self.limit_s or now_s - self._used_s < self.limit_s:
            return
        self._away = held.ready.request
        queue.model.clear()
        queue.checks.no_model()
        queue.captures.died()
        self.retire()


def _duration(seconds: float) -> str:
    if seconds < 120:  # noqa: PLR2004  two minutes
        return f"{seconds:.0f} seconds"
    return "an hour" if seconds == IDLE_S else f"{seconds / 60:.0f} minutes"
