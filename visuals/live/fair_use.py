"""What each visitor of a room may take, so that one leaves something to the others.

A visitor is a cookie, which stays the same where the link is opened again: who opens it in another
browser is another one. On a loopback address nobody is limited. No torch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from inference.process.orders import RunOrder
from inference.records.errors import InputError
from inference.runs.store import RunStore
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

LIMITS_VARIABLE = "TOKEN_BY_TOKEN_LIMITS"
MEGABYTE = 1_000_000
WINDOW_S = 3600.0
COUNTED_S = 60.0  # amounts so near one another are kept as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one visitor may take; 0 for as much as they like.

    Chosen for thirty people on two cores, which decode about 100,000 tokens an hour.

    Attributes:
        runs: Going and waiting at a time.
        tokens: New tokens asked for in an hour, of all prompts together.
        upload_mb: Uploaded in an hour.
        kept_mb: Of run files on disk that the visitor made since the server's start.
    """

    runs: int = 3
    tokens: int = 20_000
    upload_mb: int = 200
    kept_mb: int = 200


def limits_from(text: str | None = None) -> Limits:
    """Return the limits as the user gives them, such as ``runs=5,tokens=0``.

    Raises:
        InputError: A name is none of ours, or a value no count.
    """
    given = os.environ.get(LIMITS_VARIABLE, "") if text is None else text
    names = [field.name for field in fields(Limits)]
    changed: dict[str, int] = {}
    for part in filter(None, (one.strip() for one in given.split(","))):
        name, _, value = part.partition("=")
        if name.strip() not in names or not (value.strip().isascii() and value.strip().isdigit()):
            msg = f"{part[:40]!r} is not a limit; {LIMITS_VARIABLE} takes {', '.join(names)}, each "
            msg += "with = and a whole number, separated by commas"
            raise InputError(msg)
        changed[name.strip()] = int(value)
    return replace(Limits(), **changed)


class LastHour:
    """Amounts by visitor, of the last hour to the minute; those who took nothing are forgotten.

    A visitor has as many entries as the hour has minutes, however often they ask.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._taken: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        return sum(len(minutes) for minutes in self._taken.values())

    def of(self, visitor: str) -> int:
        """Return what a visitor took."""
        return sum(self._late(self._taken.get(visitor, {})).values())

    def add(self, visitor: str, amount: int) -> None:
        """Count what a visitor takes."""
        minute = int(self._now() // COUNTED_S)
        if visitor not in self._taken:
            late = {name: self._late(minutes) for name, minutes in self._taken.items()}
            self._taken = {name: minutes for name, minutes in late.items() if minutes}
        minutes = self._late(self._taken.get(visitor, {}))
        self._taken[visitor] = {**minutes, minute: minutes.get(minute, 0) + amount}

    def _late(self, minutes: dict[int, int]) -> dict[int, int]:
        oldest = (self._now() - WINDOW_S) // COUNTED_S
        return {minute: amount for minute, amount in minutes.items() if minute > oldest}


class FairUse:
    """What each visitor took so far; safe from several threads."""

    def __init__(
        self, limits: Limits, store: RunStore, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._store = store
        self._lock = threading.Lock()
        self._tokens, self._uploads = LastHour(now), LastHour(now)
        self._made: dict[str, set[str]] = {}

    def take_upload(self, visitor: str, size_bytes: int) -> bool:
        """Count an upload and return True, unless it is more than the visitor may bring."""
        limit = self.limits.upload_mb * MEGABYTE
        with self._lock:
            if limit and self._uploads.of(visitor) + size_bytes > limit:
                return False
            self._uploads.add(visitor, size_bytes)
            return True

    def check_kept(self, visitor: str) -> None:
        """Raise InputError where the visitor's runs take more of the disk than they may."""
        with self._lock:
            made = frozenset(self._made.get(visitor, ()))
        limit = self.limits.kept_mb * MEGABYTE
        if not limit or not made:
            return
        kept_bytes = sum(one.file_bytes for one in self._store.entries() if one.key in made)
        if kept_bytes > limit:
            msg = f"your runs take {kept_bytes / MEGABYTE:.0f} MB on this server and may take "
            msg += f"{self.limits.kept_mb}; delete some on the Runs page"
            raise InputError(msg)

    def check_run(self, visitor: str, order: RunOrder, going: int) -> None:
        """Raise InputError where a run is more than the visitor may have.

        Args:
            visitor: Who asks.
            order: What for.
            going: Runs of the visitor that go or wait.
        """
        tokens = new_tokens(order)
        with self._lock:
            if self.limits.runs and going >= self.limits.runs:
                msg = f"{going} of your runs are running or waiting already, and this server takes "
                msg += f"{self.limits.runs} from each visitor; start another when one has ended"
                raise InputError(msg)
            spent = self._tokens.of(visitor)
            if self.limits.tokens and spent + tokens > self.limits.tokens:
                left = max(0, self.limits.tokens - spent)
                msg = (
                    f"this asks for {tokens:,} new tokens, and of the {self.limits.tokens:,} that "
                )
                msg += (
                    f"each visitor has in an hour you have {left:,} left; ask for fewer, or later"
                )
                raise InputError(msg)

    def note_run(self, visitor: str, run: LiveRun) -> None:
        """Count a run that was queued."""
        with self._lock:
            if run.order is not None:
                self._tokens.add(visitor, new_tokens(run.order))
            self._made.setdefault(visitor, set()).add(run.run_id)


def new_tokens(order: RunOrder) -> int:
    """Return how many new tokens an order asks for at most."""
    return order.max_new_tokens * len(order.prompts)


def unfinished(hub: Hub) -> tuple[LiveRun, ...]:
    """Return the runs to be made, the one that goes first, then those that wait, in order."""
    with hub.lock:
        alive = [run for run in hub.runs() if run.order is not None and not run.state.is_final]
        return tuple(sorted(alive, key=lambda run: hub.status(run).queue_position or 0))


class VisitorHub(Hub):
    """The same hub, runs and engine, as one visitor of a room uses them."""

    def __init__(self, hub: Hub, fair_use: FairUse, visitor: str) -> None:
        self.__dict__ = dict(hub.__dict__)  # the same parts, which a hub never changes for others
        self._fair_use = fair_use
        self._visitor = visitor

    def prepare(self, order: RunOrder) -> LiveRun:
        """Return a run that is not in the queue yet; reads the disk, so without the lock.

        Raises:
            PromptError, InputError: The order cannot be run, or too much is kept already.
        """
        self._fair_use.check_kept(self._visitor)
        return super().prepare(order)

    def enqueue(self, run: LiveRun) -> LiveRun:
        """Queue a run of this visitor and return it.

        Raises:
            InputError: Too many wait, or it is more than the visitor may have.
        """
        with self.lock:
            if run.order is not None:
                mine = [one for one in unfinished(self) if one.owner == self._visitor]
                self._fair_use.check_run(self._visitor, run.order, len(mine))
            run.owner = self._visitor
            queued = super().enqueue(run)
            self._fair_use.note_run(self._visitor, run)
            return queued
