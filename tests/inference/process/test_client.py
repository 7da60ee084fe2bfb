"""The engine process for real: spawned, told to load and run a tiny model, killed, closed."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import torch
from transformers import AutoModelForCausalLM

from inference.process.client import EngineClient
from inference.process.messages import (
    Action,
    Control,
    EngineDied,
    Generate,
    LoadFailed,
    LoadModel,
    ModelReady,
    Reply,
    RunEnded,
    RunStarted,
    StateChanged,
    Stepped,
)
from inference.records.options import Sampling
from inference.records.run import Request
from inference.records.status import RunState

pytestmark = pytest.mark.timeout(300)  # several processes that each import torch

R = TypeVar("R")
TIMEOUT_S = 120.0
PROMPT = (5, 9, 120, 77)


class EngineUnderTest:
    """A real engine process and the replies it gave."""

    def __init__(self) -> None:
        self._replies: queue.Queue[Reply] = queue.Queue()
        self.client = EngineClient(self._replies.put)

    def until(self, kind: type[R]) -> R:
        """Return the next reply of this kind, passing over others."""
        while True:
            reply = self._replies.get(timeout=TIMEOUT_S)
            if isinstance(reply, kind):
                return reply

    def load(self, folder: Path) -> ModelReady:
        self.client.send(LoadModel(model=str(folder), dtype="float64"))
        return self.until(ModelReady)


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineUnderTest]:
    under_test = EngineUnderTest()
    yield under_test
    under_test.client.close()


def generate(run_id: str, *, new_tokens: int = 6, is_paused: bool = False) -> Generate:
    request = Request(
        request_id="r0",
        prompt_text="",
        prompt_ids=PROMPT,
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )
    return Generate(run_id=run_id, requests=(request,), seed=0, is_paused=is_paused)


def test_a_run_in_the_engine_process_gives_the_ids_of_generate(
    engine: EngineUnderTest, tiny_model_folder: Path
) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float64)
    expected = model.generate(
        torch.tensor([PROMPT]), do_sample=False, max_new_tokens=6, pad_token_id=1
    )[0, len(PROMPT) :].tolist()

    ready = engine.load(tiny_model_folder)
    engine.client.send(generate("run"))
    started = engine.until(RunStarted)
    steps = [engine.until(Stepped).event for _ in expected]
    ended = engine.until(RunEnded)

    assert [event.rows[0].token_id for event in steps] == expected
    assert (ended.run_id, ended.state) == ("run", RunState.DONE)
    assert started.info.shape == ready.shape
    assert started.info.device.dtype == "float64"


def test_a_paused_run_takes_one_step_a_press_and_stops_when_told(
    engine: EngineUnderTest, tiny_model_folder: Path
) -> None:
    engine.load(tiny_model_folder)
    engine.client.send(generate("run", new_tokens=100, is_paused=True))
    assert engine.until(StateChanged).state is RunState.PAUSED

    engine.client.send(Control(run_id="run", action=Action.STEP))
    first = engine.until(Stepped).event
    engine.client.send(Control(run_id="run", action=Action.STEP))
    second = engine.until(Stepped).event
    engine.client.send(Control(run_id="run", action=Action.STOP))
    ended = engine.until(RunEnded)

    assert (first.index, second.index) == (0, 1)
    assert ended.state is RunState.STOPPED


def test_a_killed_engine_is_reported_and_the_next_command_starts_another(
    engine: EngineUnderTest, tiny_model_folder: Path
) -> None:
    engine.load(tiny_model_folder)
    engine.client.send(generate("run", new_tokens=100, is_paused=True))
    engine.until(StateChanged)
    process_id = engine.client.process_id
    assert process_id is not None

    os.kill(process_id, signal.SIGKILL)
    died = engine.until(EngineDied)

    assert died.exit_code == -signal.SIGKILL
    engine.load(tiny_model_folder)
    assert engine.client.process_id not in (None, process_id)


def test_a_frozen_engine_can_be_ended_and_the_next_command_starts_another(
    engine: EngineUnderTest, tiny_model_folder: Path
) -> None:
    engine.load(tiny_model_folder)
    process_id = engine.client.process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)

    engine.client.kill()

    assert engine.until(EngineDied).exit_code == -signal.SIGKILL
    engine.load(tiny_model_folder)


def test_a_model_that_is_not_there_is_a_sentence_and_the_engine_lives_on(
    engine: EngineUnderTest, tmp_path: Path, tiny_model_folder: Path
) -> None:
    engine.client.send(LoadModel(model=str(tmp_path / "nothing")))
    failed = engine.until(LoadFailed)

    assert "nothing" in failed.sentence
    assert engine.load(tiny_model_folder).request.dtype == "float64"


def test_closing_ends_the_process() -> None:
    under_test = EngineUnderTest()
    under_test.client.send(Control(run_id="none", action=Action.PAUSE))
    assert under_test.client.process_id is not None

    under_test.client.close()

    assert under_test.client.process_id is None
