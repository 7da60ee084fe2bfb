"""The engine's side of the process, in this process: sent commands over a real pipe."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path

import pytest

from inference.models.process_memory import lift_limit
from inference.process.messages import Command, EngineDied, Generate, LoadModel, Reply
from inference.process.worker import EngineHost
from inference.records.attention import AttentionChoice
from inference.records.options import CacheKind, Sampling
from inference.records.run import Request

PROMPT = (5, 9, 120, 77, 31)
ANSWER_S = 60.0
END = EngineDied(exit_code=None)  # sent by the test itself, behind what a command made the host say
Tell = Callable[[Command], list[Reply]]


def request(request_id: str = "r0") -> Request:
    """Return a request for three tokens."""
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=PROMPT,
        max_new_tokens=3,
        sampling=Sampling(),
    )


def generate(
    *,
    capture: AttentionChoice | None = None,
    chunk_tokens: int | None = None,
    cache: CacheKind = CacheKind.DYNAMIC,
) -> Generate:
    """Return the command for a run of one request."""
    return Generate(
        run_id="run",
        requests=(request(),),
        seed=0,
        capture=capture,
        chunk_tokens=chunk_tokens,
        cache=cache,
    )


def obeys(host: EngineHost, command: Command) -> bool:
    """Let a host carry out a command; what a load does to its process is undone in the tests' own.

    There it would hold every test after it, and each process that one starts, to the engine's share
    of memory, and keep from collection what those before it left.
    """
    try:
        return host.obey(command)
    finally:
        lift_limit()
        gc.unfreeze()


@contextmanager
def host_with(folder: Path) -> Generator[tuple[Tell, list[Reply]]]:
    """Yield a way to send a host with this model a command, and what it said on loading."""
    ours, theirs = Pipe()
    inbox: queue.Queue[Reply] = queue.Queue()

    def listen() -> None:
        while True:
            try:
                inbox.put(ours.recv())
            except (EOFError, OSError):
                return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    host = EngineHost(theirs)

    def tell(command: Command) -> list[Reply]:
        """Return what was said until the command was carried out."""
        assert obeys(host, command)
        theirs.send(END)
        said: list[Reply] = []
        try:
            said.extend(iter(lambda: inbox.get(timeout=ANSWER_S), END))
        except queue.Empty:
            pytest.fail(f"{command} was not answered in {ANSWER_S:.0f} s; it said: {said}")
        return said

    yield tell, tell(LoadModel(model=str(folder), dtype="float32", device="cpu"))
    theirs.close()
    listener.join(ANSWER_S)
    ours.close()
