"""Counts the shape of a ``config.json`` that a user brings, in a process of its own.

Building a model without weights needs torch, which the app process does not load, and the engine is
not to be kept waiting. The process is of low priority and ends with its answer. No torch here.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection

from inference.records.errors import TokenByTokenError
from inference.records.model import ModelShape

LONGEST_S = 120.0  # importing torch on a busy small machine, and building the largest of models
KEPT_ANSWERS = 32
PATIENCE_S = 15.0  # a page that waits asks twice a second, or anew when it is touched
NICENESS = 10
TOO_LONG = f"counting this config took longer than {LONGEST_S:.0f} s and was ended; check its sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeAnswer:
    """What is known of a config's shape.

    Attributes:
        is_working: True while it is being counted.
        sentence: Why there is no shape; empty when there is one, or none yet.
    """

    shape: ModelShape | None = None
    is_working: bool = False
    sentence: str = ""


WORKING = ShapeAnswer(is_working=True)
Count = Callable[[Mapping[str, object], str], ShapeAnswer]


def count_apart(fields: Mapping[str, object], dtype: str) -> ShapeAnswer:
    """Return a config's shape, counted in a process of its own; waits for it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_count, args=(theirs, dict(fields), dtype), name="token-by-token-shape", daemon=True
    )
    process.start()
    theirs.close()
    answer = ShapeAnswer(sentence=TOO_LONG)
    if ours.poll(LONGEST_S):
        try:
            answer = ours.recv()
        except EOFError:
            answer = ShapeAnswer(sentence="counting this config failed; check its sizes")
    process.kill()
    process.join()
    return answer


def _count(pipe: Connection, fields: dict[str, object], dtype: str) -> None:
    """Send the answer; runs in the child."""
    with contextlib.suppress(OSError, AttributeError):  # where there is no such thing, it goes on
        os.nice(NICENESS)
    importlib.import_module("transformers.utils.logging").set_verbosity_error()
    shapes = importlib.import_module("inference.models.config_shapes")
    try:
        answer = ShapeAnswer(shape=shapes.shape_of_config(fields, dtype))
    except TokenByTokenError as error:
        answer = ShapeAnswer(sentence=str(error))
    pipe.send(answer)


def _start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="shape-job", daemon=True).start()


class ShapeJobs:
    """All configs asked for, one counted at a time; what nobody asks for any more is skipped."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        count: Count = count_apart,
        start: Callable[[Callable[[], None]], None] = _start_thread,
    ) -> None:
        self._now = now
        self._count = count
        self._start = start
        self._asked_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()
        self._answers: dict[str, ShapeAnswer] = {}

    def answer(self, fields: Mapping[str, object], dtype: str) -> ShapeAnswer:
        """Return what is known of this config in this dtype; the first call starts counting it."""
        key = json.dumps([dtype, fields], sort_keys=True)
        with self._lock:
            self._asked_s[key] = self._now()
            answer = self._answers.get(key)
            if answer is not None:
                return answer
            self._answers[key] = WORKING
            for old in list(self._answers)[:-KEPT_ANSWERS]:
                del self._answers[old]
                self._asked_s.pop(old, None)
        self._start(lambda: self._work(key, fields, dtype))
        return WORKING

    def _work(self, key: str, fields: Mapping[str, object], dtype: str) -> None:
        with self._one_at_a_time:
            with self._lock:
                is_wanted = self._now() - self._asked_s.get(key, 0.0) <= PATIENCE_S
                if not is_wanted:
                    self._answers.pop(key, None)
                    self._asked_s.pop(key, None)
            if not is_wanted:
                return
            answer = self._count(fields, dtype)
        with self._lock:
            if key in self._answers:
                self._answers[key] = answer


@cache
def app_shape_jobs() -> ShapeJobs:
    """Return the process's one list of configs."""
    return ShapeJobs()
