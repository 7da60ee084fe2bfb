"""The engine checks a model in quiet moments: once for each version, behind every command."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.process.messages import (
    Checked,
    CheckFailed,
    CheckModel,
    Generate,
    LoadModel,
    ModelReady,
    Reply,
    RunStarted,
    Stepped,
)
from inference.process.worker import EngineHost
from inference.records.checks import CheckOutcome
from tests.inference.process.host_under_test import ANSWER_S, generate, obeys


class QuietEngine:
    """An engine's host with a tiny model and a cache folder of its own, all in this process."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.theirs = multiprocessing.Pipe()
        self.host = EngineHost(self.theirs)
        self.host.idle._quiet_s = 0.0
        self._load = LoadModel(model=str(folder), dtype="float32", device="cpu")
        self._inbox: queue.Queue[Reply] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                self._inbox.put(self.ours.recv())
            except (EOFError, OSError):
                return

    def said(self) -> list[Reply]:
        """Return what was said until here."""
        self.theirs.send(CheckFailed(sentence="the end"))
        end = CheckFailed(sentence="the end")
        return list(iter(lambda: self._inbox.get(timeout=ANSWER_S), end))

    def load(self) -> ModelReady:
        assert obeys(self.host, self._load)
        [ready] = [reply for reply in self.said() if isinstance(reply, ModelReady)]
        return ready

    def rest(self) -> list[Reply]:
        """Let the engine do all that it does while nobody wants anything, and return its words."""
        self.host.idle.until_command()
        return self.said()

    def close(self) -> None:
        self.theirs.close()
        self.ours.close()


@pytest.fixture
def engine(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QuietEngine]:
    monkeypatch.setenv("TOKEN_BY_TOKEN_CACHE", str(tmp_path))
    engine = QuietEngine(tiny_model_folder)
    yield engine
    engine.close()


def test_a_model_is_checked_once_and_the_result_comes_with_it_afterwards(
    engine: QuietEngine,
) -> None:
    assert engine.load().check is None

    said = engine.rest()

    states = [reply for reply in said if isinstance(reply, Checked)]
    assert [len(reply.check.checks) for reply in states] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert [reply.check.is_whole for reply in states] == [False] * 7 + [True]
    assert states[-1].is_kept
    assert not states[-1].check.of(CheckOutcome.DIFFERS)
    assert engine.load().check == states[-1].check
    assert engine.rest() == []


def test_a_check_that_is_asked_for_is_made_anew(engine: QuietEngine) -> None:
    engine.load()
    engine.rest()

    assert engine.host.obey(CheckModel())

    states = [reply for reply in engine.rest() if isinstance(reply, Checked)]
    assert states[-1].check.is_whole
    assert states[0].check.checks == ()


def test_a_run_goes_first_and_the_check_goes_on_after_it(engine: QuietEngine) -> None:
    engine.load()
    pieces = engine.host.idle._jobs["self-check"]
    for _ in range(12):
        next(pieces)
    before = len([reply for reply in engine.said() if isinstance(reply, Checked)])

    assert engine.host.obey(generate())

    ran = engine.said()
    after = [reply for reply in engine.rest() if isinstance(reply, Checked)]
    assert len([reply for reply in ran if isinstance(reply, Stepped)]) == 3
    assert before >= 2
    assert before + len(after) == 8
    assert after[-1].check.is_whole
    assert not after[-1].check.of(CheckOutcome.DIFFERS)


def test_another_model_takes_the_check_of_the_one_before_away(engine: QuietEngine) -> None:
    engine.load()
    next(engine.host.idle._jobs["self-check"])
    engine.load()

    states = [reply for reply in engine.rest() if isinstance(reply, Checked)]

    assert [len(reply.check.checks) for reply in states] == [0, 1, 2, 3, 4, 5, 6, 6]


def test_a_run_of_a_model_that_failed_carries_what_differs(engine: QuietEngine) -> None:
    engine.load()
    head = engine.host._runner.loaded.model.get_output_embeddings()
    head.register_forward_hook(lambda _module, _given, logits: logits.roll(1, dims=-1))
    engine.rest()

    command: Generate = generate()
    assert engine.host.obey(command)

    [started] = [reply for reply in engine.said() if isinstance(reply, RunStarted)]
    assert started.info.check_warning.startswith(
        "The self-check of this model on this machine differs: ids (0 of 8 ids are the same)"
    )


def test_a_result_that_cannot_be_kept_is_said(
    engine: QuietEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    engine.load()
    monkeypatch.setenv("TOKEN_BY_TOKEN_CACHE", str(taken))

    states = [reply for reply in engine.rest() if isinstance(reply, Checked)]

    assert [reply.is_kept for reply in states] == [True] * 7 + [False]
