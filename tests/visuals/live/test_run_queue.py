"""Tokenising holds nobody up, and a run changes under the hub's lock only."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.models.chat_templates import Conversation
from inference.process.messages import Action, Generate, RunEnded, RunStarted
from inference.process.orders import RunOrder
from inference.records.errors import PromptError
from inference.records.status import RunState
from inference.runs.store import RunStore
from tests.builders import DEFAULT_LOAD, model_ready, order, run_info
from tests.doubles import ScriptedEngine
from tests.visuals.live_doubles import HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.groups import Groups, PlannedRun
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun
from visuals.live.run_saver import RunSaver
from visuals.live.surroundings import Surroundings

PATIENCE_S = 30.0  # of the test, for another thread; nothing waits that long when all is well


class SlowTemplate:
    """Applies a chat template when it is let, on whatever thread asks.

    Attributes:
        started: Set when a prompt is being rendered.
        go_on: Rendering ends once this is set.
        prompts: All that were rendered, in order.
    """

    def __init__(self) -> None:
        self.started, self.go_on = threading.Event(), threading.Event()
        self.prompts: list[str] = []
        self.fault: Exception | None = None

    def __call__(self, conversation: Conversation) -> str:
        prompt = conversation.turns[0][1]
        self.prompts.append(prompt)
        self.started.set()
        assert self.go_on.wait(PATIENCE_S)
        if self.fault is not None:
            raise self.fault
        return prompt


class ThreadedHub:
    """A hub that tokenises on threads, with a template that takes as long as a test wants."""

    def __init__(self) -> None:
        self.template = SlowTemplate()
        self.ended = threading.Event()
        self.hub = Hub(
            self._start,
            Surroundings(render=self.template, on_end=(lambda _run: self.ended.set(),)),
        )
        self.begun = threading.Event()

    def _start(self, on_reply: object) -> ScriptedEngine:
        self.engine = ScriptedEngine(on_reply)
        send = self.engine.send

        def noticing(command: object) -> None:
            send(command)
            if isinstance(command, Generate):
                self.begun.set()

        self.engine.send = noticing
        return self.engine

    def generates(self) -> list[Generate]:
        return [command for command in self.engine.commands if isinstance(command, Generate)]


def templated(prompt: str) -> RunOrder:
    return dataclasses.replace(order(prompt), is_raw=False)


@pytest.fixture
def under_test() -> Iterator[ThreadedHub]:
    threaded = ThreadedHub()
    yield threaded
    threaded.template.go_on.set()


def answers_at_once(hub: Hub, run: LiveRun) -> bool:
    """Tell whether another thread can ask the hub at this moment."""
    answered = threading.Event()

    def ask() -> None:
        hub.status(run)
        hub.snapshot(run)
        hub.watch(run)
        hub.leave(run)
        answered.set()

    threading.Thread(target=ask, daemon=True).start()
    return answered.wait(PATIENCE_S / 6)


def test_the_hub_answers_while_the_prompt_of_a_waiting_run_is_tokenised(
    under_test: ThreadedHub,
) -> None:
    run = under_test.hub.submit(templated("hi"))
    under_test.engine.reply(model_ready())
    assert under_test.template.started.wait(PATIENCE_S)

    assert answers_at_once(under_test.hub, run)
    assert under_test.generates() == []

    under_test.template.go_on.set()
    assert under_test.begun.wait(PATIENCE_S)
    assert [command.run_id for command in under_test.generates()] == [run.run_id]


def test_the_hub_answers_while_another_user_submits(under_test: ThreadedHub) -> None:
    under_test.hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(model_ready())
    shown = under_test.hub.adopt(trace_of([b"a"], [b"b"]))
    press = threading.Thread(target=under_test.hub.submit, args=(templated("hi"),), daemon=True)
    press.start()
    assert under_test.template.started.wait(PATIENCE_S)

    assert answers_at_once(under_test.hub, shown)

    under_test.template.go_on.set()
    press.join(PATIENCE_S)
    assert len(under_test.generates()) == 1


def test_a_prompt_is_tokenised_once(under_test: ThreadedHub) -> None:
    under_test.template.go_on.set()
    under_test.hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(model_ready())

    first = under_test.hub.submit(templated("first"))
    under_test.hub.submit(templated("second"))
    under_test.engine.reply(RunStarted(info=run_info(first.run_id)))
    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))

    assert len(under_test.generates()) == 2
    assert under_test.template.prompts == ["first", "second"]


def test_a_run_stopped_while_it_is_tokenised_does_not_begin(under_test: ThreadedHub) -> None:
    run = under_test.hub.submit(templated("hi"))
    under_test.engine.reply(model_ready())
    assert under_test.template.started.wait(PATIENCE_S)

    under_test.hub.control(run, Action.STOP)
    following = under_test.hub.submit(order("raw"))
    under_test.template.go_on.set()

    assert under_test.begun.wait(PATIENCE_S)
    assert run.state is RunState.STOPPED
    assert [command.run_id for command in under_test.generates()] == [following.run_id]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PromptError("the template was stopped"), "the template was stopped"),
        (RuntimeError("a fault of ours"), "could not be tokenised"),
    ],
    ids=["refused", "a fault"],
)
def test_a_prompt_that_cannot_be_tokenised_fails_its_run_and_not_the_next(
    under_test: ThreadedHub, fault: Exception, said: str
) -> None:
    under_test.template.fault = fault
    under_test.template.go_on.set()
    run = under_test.hub.submit(templated("hi"))
    following = under_test.hub.submit(order("raw"))

    under_test.engine.reply(model_ready())

    assert under_test.begun.wait(PATIENCE_S)
    assert run.state is RunState.FAILED
    assert said in run.message
    assert [command.run_id for command in under_test.generates()] == [following.run_id]


def test_groups_tokenise_no_prompt_under_the_lock(under_test: ThreadedHub) -> None:
    under_test.template.go_on.set()
    under_test.hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(model_ready())
    planned = [PlannedRun(label=one, order=templated(one)) for one in ("a", "b")]
    group = Groups(under_test.hub).start(planned)
    [first] = group.runs
    under_test.engine.reply(RunStarted(info=run_info(first.run_id)))
    under_test.template.go_on.clear()
    under_test.template.started.clear()
    under_test.begun.clear()

    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))

    assert under_test.template.started.wait(PATIENCE_S)
    assert answers_at_once(under_test.hub, first)
    under_test.template.go_on.set()
    assert under_test.begun.wait(PATIENCE_S)


def test_a_run_of_the_hub_changes_under_its_lock_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The saver wrote two fields under a lock of its own, and a page that polls under none."""
    saver = RunSaver(RunStore(tmp_path))
    under_test = HubUnderTest(saver)
    hub = under_test.hub
    changed: set[str] = set()
    unlocked: set[str] = set()

    def change(run: LiveRun, name: str, value: object) -> None:
        if hasattr(run, "run_id") and hub.find(run.run_id) is run:
            changed.add(name)
            if not hub.lock._is_owned():  # type: ignore[attr-defined]
                unlocked.add(name)
        object.__setattr__(run, name, value)

    monkeypatch.setattr(LiveRun, "__setattr__", change)

    run = under_test.begin("hi")
    hub.watch(run)
    hub.touch(run)
    hub.split_steps(run, is_wanted=True)
    hub.control(run, Action.PACE, 1.0)
    under_test.step(run, 0, "o")
    saver.keep_once(hub)
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    (tmp_path / "runs").write_text("a file where the folder should be")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    saver.keep_once(hub)
    hub.leave(run)
    shown = hub.replay(trace_of([b"a"], [b"b"]))
    hub.control(shown, Action.PAUSE)
    hub.status(shown)
    hub.snapshot(shown)
    Groups(hub).start([PlannedRun(label="a", order=order("a"))])

    assert unlocked == set()
    assert changed >= {"notice", "is_unwritten", "was_watched", "last_seen_s", "viewers", "state"}
