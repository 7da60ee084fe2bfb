"""Where a run, or the loading of a model, stands for those who watch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """Where a run stands. The last four are final."""

    QUEUED = "queued"
    LOADING = "loading"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def is_final(self) -> bool:
        """True when the run will not change any more."""
        return self in FINAL_STATES


FINAL_STATES = frozenset({RunState.DONE, RunState.STOPPED, RunState.FAILED, RunState.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands for those who watch it.

    Attributes:
        message: One sentence: what is happening, or why it ended.
        stage: What is being loaded; empty when nothing is.
        stage_ratio: How far that is, 0 to 1; None when it cannot be said.
        queue_position: 1 for the next run to start; None when it does not wait.
        is_held: Its first step waits until the page that shows it has been drawn.
    """

    state: RunState
    message: str = ""
    stage: str = ""
    stage_ratio: float | None = None
    queue_position: int | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStage:
    """What is happening while a model is fetched or loaded.

    Attributes:
        stage: A short phrase for the user, such as ``reading weights``.
        ratio: How far the stage is, 0 to 1; None when it cannot be said.
    """

    stage: str
    ratio: float | None = None
