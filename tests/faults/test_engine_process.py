"""A real engine process that is killed in decode, runs out of its memory, or is let go."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
import torch

from inference.models.process_memory import MEMORY_VARIABLE
from inference.process.client import EngineClient
from inference.process.messages import (
    Action,
    Control,
    EngineDied,
    Generate,
    LoadModel,
    ModelReady,
    Reply,
    RunEnded,
    Stepped,
)
from inference.records.options import AttentionKind, Sampling
from inference.records.run import Request
from inference.records.status import RunState
from tests.tiny_model import tiny_config, tiny_tokenizer

pytestmark = pytest.mark.timeout(300)  # two processes that import torch

R = TypeVar("R")
TIMEOUT_S = 120.0
LONGEST = 20_000
ENGINE_MB = 2000


class EngineUnderTest:
    """A real engine process and what it said."""

    def __init__(self) -> None:
        self._replies: queue.Queue[Reply] = queue.Queue()
        self.client = EngineClient(self._replies.put)

    def until(self, kind: type[R]) -> R:
        """Return the next reply of this kind, passing over others."""
        while True:
            reply = self._replies.get(timeout=TIMEOUT_S)
            if isinstance(reply, kind):
                return reply


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model with a long context whose scores of all queries take gigabytes."""
    from transformers import LlamaForCausalLM  # noqa: PLC0415  torch, only where it is needed

    folder = tmp_path_factory.mktemp("models") / "long"
    model = LlamaForCausalLM(tiny_config(max_position_embeddings=LONGEST)).to(torch.float32)
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineUnderTest]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MEMORY_VARIABLE, f"engine={ENGINE_MB}")
        under_test = EngineUnderTest()
        yield under_test
        under_test.client.close()


def load(folder: Path) -> LoadModel:
    return LoadModel(
        model=str(folder), dtype="float32", device="cpu", attention=AttentionKind.EAGER
    )


def generate(run_id: str, prompt_tokens: int = 4, new_tokens: int = 3) -> Generate:
    request = Request(
        request_id="r0",
        prompt_text="",
        prompt_ids=tuple(5 + index % 200 for index in range(prompt_tokens)),
        max_new_tokens=new_tokens,
        sampling=Sampling(),
    )
    return Generate(run_id=run_id, requests=(request,), seed=0)


def test_a_step_beyond_the_engines_memory_ends_its_run_with_a_sentence(
    engine: EngineUnderTest, long_model: Path
) -> None:
    engine.client.send(load(long_model))
    engine.until(ModelReady)

    engine.client.send(generate("long", prompt_tokens=LONGEST - 100))
    ended = engine.until(RunEnded)

    assert ended.state is RunState.FAILED
    assert "out of memory while feeding 19900 tokens" in ended.message
    engine.client.send(generate("short"))
    assert engine.until(RunEnded).state is RunState.DONE


def test_an_engine_killed_in_decode_has_sent_its_steps_and_another_runs_the_next(
    engine: EngineUnderTest, long_model: Path
) -> None:
    paced = replace(generate("paced", new_tokens=500), steps_per_s=20.0)
    engine.client.send(paced)
    seen = [engine.until(Stepped).event.index for _ in range(3)]
    process_id = engine.client.process_id
    assert process_id is not None

    os.kill(process_id, signal.SIGKILL)

    assert engine.until(EngineDied).exit_code == -signal.SIGKILL
    assert seen == [0, 1, 2]
    engine.client.send(load(long_model))
    engine.until(ModelReady)
    engine.client.send(generate("next"))
    assert engine.until(RunEnded).state is RunState.DONE


def test_an_engine_that_is_let_go_ends_and_gives_its_memory_back(engine: EngineUnderTest) -> None:
    process_id = engine.client.process_id
    assert process_id is not None
    process = psutil.Process(process_id)

    engine.client.retire()

    assert engine.client.process_id is None
    process.wait(TIMEOUT_S)
    engine.client.send(Control(run_id="none", action=Action.PAUSE))
    assert engine.client.process_id not in (None, process_id)
