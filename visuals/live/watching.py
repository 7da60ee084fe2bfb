"""The hub as those have it who may only watch: it tells everything and changes nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from inference.process.messages import Action, LoadModel, Measure
from inference.process.orders import RunOrder
from inference.records.attention import AttentionChoice
from inference.records.errors import InputError
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

ONLY_WATCHING = "this link is for watching only; ask for one to operate with"


class WatchingHub(Hub):
    """The same hub, runs and engine, without what steers them.

    ``READS`` has the methods that a watcher may use; a test holds it to all that a hub offers.
    """

    READS = frozenset(
        {
            *("lock", "reopen", "find", "runs", "snapshot", "status", "engine_status"),
            *("engine_words", "codec", "attention", "whole", "measure_status", "check_status"),
            *("watch", "leave", "touch", "page_opened", "page_is_quiet", "page_left"),
        }
    )

    def __init__(self, hub: Hub) -> None:
        self.__dict__ = hub.__dict__  # one state, as another class of user sees it

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401  of the hub's members
        """Return a member of the hub, unless it is one that steers."""
        if name.startswith("_") or name in WatchingHub.READS or name in WatchingHub.__dict__:
            return super().__getattribute__(name)
        return _refuse

    def submit(self, order: RunOrder) -> LiveRun:
        """Refuse a run."""
        _refuse(order)

    def measure(self, command: Measure) -> None:
        """Refuse a measurement."""
        _refuse(command)

    def preload(self, command: LoadModel) -> None:
        """Refuse a model."""
        _refuse(command)

    def control(self, run: LiveRun, action: Action, steps_per_s: float | None = None) -> None:
        """Refuse to steer a run."""
        _refuse(run, action, steps_per_s)

    def capture(self, run: LiveRun, choice: AttentionChoice, query: int | None = None) -> None:
        """Capture nothing else: the weights shown are those that the operator chose."""

    def split_steps(self, run: LiveRun, *, is_wanted: bool) -> None:
        """Time no other steps: those are timed in parts that the operator chose."""


def _refuse(*_arguments: object, **_named: object) -> NoReturn:
    raise InputError(ONLY_WATCHING)
