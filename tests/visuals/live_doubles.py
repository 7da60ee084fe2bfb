"""Doubles of the live side: a hub on a scripted engine, captured runs, messages taken apart."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.process.messages import (
    Attended,
    CaptureAttention,
    Generate,
    RunStarted,
    Stepped,
)
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import BatchPlan
from inference.records.rooflines import MeasuredCeilings, SweepPoint
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, byte_id, model_ready, order, run_info, step
from tests.doubles import ScriptedEngine
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.memory_watch import MemoryWatch
from visuals.live.run_saver import RunSaver
from visuals.live.surroundings import Surroundings

PATIENCE_S = 60.0  # for a machine that has other things to do
GRACE_S = 30.0
FROM_HERE = {"origin": "http://testserver"}  # what a browser says of a page of this server
FIRST = AttentionChoice(layer=1)
POINT = SweepPoint(label="a sweep", size=1, best=2e9, median=1.8e9, worst=1e9, repeats=7)
MEASURED = MeasuredCeilings(
    device=TINY_DEVICE,
    dtype="float32",
    machine="a test machine, 1 thread",
    torch_version="2.13.0",
    threads=1,
    last_cache_bytes=1 << 20,
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
    reads=(POINT,),
    products=(replace(POINT, best=6e9),),
)


class HubUnderTest:
    """A hub on a scripted engine and a scripted time, without threads."""

    def __init__(
        self,
        saver: RunSaver | None = None,
        hold_s: float = 0.0,
        idle_limit_s: float = 0.0,
        memory: MemoryWatch | None = None,
    ) -> None:
        self.time_s = 0.0
        self.engines: list[ScriptedEngine] = []
        around = Surroundings(
            now=lambda: self.time_s,
            grace_s=GRACE_S,
            run_apart=lambda work: work(),
            hold_s=hold_s,
            idle_limit_s=idle_limit_s,
            memory=memory or MemoryWatch(),
        )
        if saver is not None:
            around = replace(around, recall=saver.recall, on_end=(saver.wake,))
        self.hub = Hub(self._start, around)

    def _start(self, on_reply: object) -> ScriptedEngine:
        self.engines.append(ScriptedEngine(on_reply))
        return self.engines[-1]

    @property
    def engine(self) -> ScriptedEngine:
        return self.engines[-1]

    def generates(self) -> list[Generate]:
        return [command for command in self.engine.commands if isinstance(command, Generate)]

    def load(self) -> None:
        """Have the engine hold a model."""
        self.hub.preload(DEFAULT_LOAD)
        self.engine.reply(model_ready())

    def begin(self, prompt: str = "hello") -> LiveRun:
        """Submit a run on a loaded model and let the engine take it up."""
        if self.hub.engine_status().ready is None:
            self.load()
        run = self.hub.submit(order(prompt))
        self.engine.reply(RunStarted(info=run_info(run.run_id)))
        return run

    def step(self, run: LiveRun, index: int, letter: str) -> None:
        event = step(index, len(run.requests[0].prompt_ids), byte_id(letter))
        self.engine.reply(Stepped(run_id=run.run_id, event=event))


class CapturedHub(HubUnderTest):
    """A hub whose runs are captured."""

    def begin_captured(self, choice: AttentionChoice | None = None) -> LiveRun:
        if self.hub.engine_status().ready is None:
            self.load()
        run = self.hub.submit(replace(order("hello"), is_captured=True, capture=choice))
        self.engine.reply(RunStarted(info=run_info(run.run_id)))
        return run

    def begin_batch(
        self, plan: BatchPlan, *, gap_s: float = 0.0, is_captured: bool = True
    ) -> LiveRun:
        self.load()
        arrivals_s = (0.0, gap_s, 2 * gap_s)
        wanted = replace(order("a"), prompts=("a", "b", "c"), arrivals_s=arrivals_s, plan=plan)
        run = self.hub.submit(replace(wanted, is_captured=is_captured))
        self.engine.reply(RunStarted(info=replace(run_info(run.run_id), plan=plan)))
        return run

    def attended(self, run: LiveRun, choice: AttentionChoice, step_index: int = 0) -> AttentionMap:
        seen = AttentionMap(
            choice=choice,
            step_index=step_index,
            query_start=step_index and 4 + step_index,
            query_tokens=1 if step_index else 5,
            kv_tokens=5 + step_index,
            weights=np.ones((1, 1 if step_index else 5, 5 + step_index), dtype=np.float32),
        )
        self.engine.reply(Attended(run_id=run.run_id, step_index=step_index, attention=seen))
        return seen

    def captures(self) -> list[CaptureAttention]:
        return [
            command for command in self.engine.commands if isinstance(command, CaptureAttention)
        ]


@dataclass(frozen=True, slots=True)
class Message:
    """A message taken apart."""

    size: int
    header: dict[str, Any]
    arrays: list[NDArray[Any]]


def taken_apart(message: bytes) -> Message:
    length = int.from_bytes(message[:4], "little")
    header = json.loads(message[4 : 4 + length])
    body, at, arrays = message[4 + length :], 0, []
    shapes = [(tuple(one["shape"]), one["rest"]) for one in header.get("blocks", ())]
    for shape, has_rest in shapes:
        for part in (shape, shape[:2]) if has_rest else (shape,):
            count = int(np.prod(part))
            arrays.append(np.frombuffer(body, "<f2", count, at).reshape(part))
            at += 2 * count
    if header["kind"] == "row":
        arrays.append(np.frombuffer(body, "<f4"))
        at = len(body)
    assert at == len(body)
    return Message(len(message), header, arrays)


def viewers_left(run: LiveRun) -> int:
    """Return how many viewers a run still has, once those that are going have gone.

    A closed socket's viewer is counted off on a thread, which may come after the socket's end.
    """
    end = time.monotonic() + PATIENCE_S
    while run.viewers and time.monotonic() < end:
        time.sleep(0.01)
    return run.viewers
