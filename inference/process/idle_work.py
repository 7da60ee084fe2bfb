"""What the engine process does while nobody wants anything of it: jobs in short pieces.

A job is an iterator, and each ``next`` does one piece of it. Between two pieces every command goes
first, so a run begins at once and the job goes on after it. A piece that takes longer asks
``IdleWork.is_called`` on its way, leaves off when it is, and is done anew later. Between two pieces
a job leaves the model as it found it: no hook, no other code, no setting. No torch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from multiprocessing.connection import Connection

log = logging.getLogger(__name__)

# Source: our own choice: longer than a page takes from a model that is loaded to the first run.
QUIET_S = 2.0


class IdleWork:
    """The jobs that wait for a quiet moment, the one added first at the front."""

    def __init__(self, connection: Connection, quiet_s: float = QUIET_S) -> None:
        """Begin without a job.

        Args:
            connection: Where commands come in.
            quiet_s: How long none may have come before a job goes on.
        """
        self._connection = connection
        self._quiet_s = quiet_s
        self._jobs: dict[str, Iterator[object]] = {}

    def add(self, name: str, job: Iterator[object]) -> None:
        """Take a job; one of the same name that was not finished gives way to it."""
        self.drop(name)
        self._jobs[name] = job

    def drop(self, name: str) -> None:
        """Forget a job; without one of this name, do nothing."""
        self._jobs.pop(name, None)

    def is_called(self) -> bool:
        """Return whether a command waits, or the app is gone."""
        return self._connection.poll()

    def until_command(self) -> None:
        """Work until a command can be received; return at once when one can, or nothing is left."""
        if not self._jobs or self._connection.poll(self._quiet_s):
            return
        while self._jobs and not self.is_called():
            self._do_a_piece(next(iter(self._jobs)))

    def _do_a_piece(self, name: str) -> None:
        """Go on with a job; one that fails is dropped, since the runs after it need the engine."""
        try:
            next(self._jobs[name])
        except StopIteration:
            self.drop(name)
        except Exception:
            log.exception("idle work failed and was dropped: %s", name)
            self.drop(name)
