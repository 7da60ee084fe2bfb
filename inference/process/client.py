"""The app's end of the engine process: starts it, sends commands, passes on replies. No torch.

The engine is a process of its own so that nothing a page does stretches a step time, and so that
the page survives a crash of the engine or its running out of memory.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from inference.process.messages import Command, EngineDied, Reply, Shutdown

log = logging.getLogger(__name__)

SHUTDOWN_GRACE_S = 3.0


def _engine_main(connection: Connection) -> None:
    """Run the engine in the child; named by string so that the app never imports torch."""
    importlib.import_module("inference.process.worker").run_engine(connection)


def _end(process: BaseProcess | None, connection: Connection | None) -> None:
    """End a process and wait for it, killing it if it does not end in time."""
    if process is None or connection is None:
        return
    with contextlib.suppress(OSError):  # it may have ended already
        connection.send(Shutdown())
    process.join(SHUTDOWN_GRACE_S)
    if process.is_alive():
        process.kill()
        process.join()


class EngineClient:
    """Owns one engine process; ``on_reply`` is called on the client's own reading thread."""

    def __init__(self, on_reply: Callable[[Reply], None]) -> None:
        self._on_reply = on_reply
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    @property
    def process_id(self) -> int | None:
        """The engine's process id; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.is_alive() else None

    def send(self, command: Command) -> None:
        """Send a command to the engine, starting it when none runs."""
        with self._lock:
            if self._connection is None:
                self._connection = self._start()
            try:
                self._connection.send(command)
            except OSError:
                # The engine died; the reading thread has yet to report it.
                return

    def kill(self) -> None:
        """End the engine at once, even one that is frozen; ``EngineDied`` is reported."""
        with self._lock:
            process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the engine and wait for it, killing it if it does not end in time."""
        _end(*self._let_go())

    def retire(self) -> None:
        """Have the engine end while others go on; the next command starts another."""
        gone = self._let_go()
        threading.Thread(target=_end, args=gone, name="engine-end", daemon=True).start()

    def _let_go(self) -> tuple[BaseProcess | None, Connection | None]:
        """Return the process and its pipe, neither of which is this client's any more."""
        with self._lock:
            gone = self._process, self._connection
            self._process = self._connection = None
        return gone

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_engine_main, args=(theirs,), name="token-by-token-engine", daemon=True
        )
        process.start()
        theirs.close()
        self._process = process
        threading.Thread(
            target=self._read, args=(process, ours), name="engine-replies", daemon=True
        ).start()
        return ours

    def _pass_on(self, reply: Reply) -> None:
        """Pass one reply to the app; an error there must not end the thread that all runs need."""
        try:
            self._on_reply(reply)
        except Exception:
            log.exception("a reply of the engine caused an error: %s", type(reply).__name__)

    def _read(self, process: BaseProcess, connection: Connection) -> None:
        """Pass on every reply until the engine has ended, then report that unless it was closed."""
        while True:
            try:
                reply: Reply = connection.recv()
            except (EOFError, OSError):
                break
            if self._process is process:  # what one that was let go still says is of no use
                self._pass_on(reply)
        process.join()
        with self._lock:
            was_closed = self._process is not process
            if not was_closed:
                self._process = self._connection = None
        if not was_closed:
            self._pass_on(EngineDied(exit_code=process.exitcode))
