"""Runs that belong together: one after another, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inference.process.messages import EngineDied, RunEnded, RunStarted, Stepped
from inference.records.errors import InputError, PromptError
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, model_ready, order, run_info
from tests.visuals.live_doubles import GRACE_S, HubUnderTest
from tests.visuals.traces import trace_of
from visuals.live.groups import MAX_RUNS, Groups, PlannedRun, RunGroup


class GroupsUnderTest(HubUnderTest):
    """Groups on a hub whose model is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = Groups(self.hub)
        self.hub.preload(DEFAULT_LOAD)
        self.engine.reply(model_ready())

    def start(self, *prompts: str) -> RunGroup:
        return self.groups.start([planned(prompt) for prompt in prompts])

    def finish(
        self, group: RunGroup, state: RunState = RunState.DONE, lost: Sequence[float] = ()
    ) -> None:
        """Let the group's current run start, lose these shares of its steps, and end."""
        run = group.current
        assert run is not None
        self.engine.reply(RunStarted(info=run_info(run.run_id)))
        for index, ratio in enumerate(lost):
            [request] = run.requests
            event = trace_of([b"a"], [b"b", b"c", b"d"]).events[index]
            row = replace(event.rows[0], request_id=request.request_id)
            slow = replace(event, rows=(row,), run_delay_s=ratio * event.duration_s)
            self.engine.reply(Stepped(run_id=run.run_id, event=slow))
        self.engine.reply(RunEnded(run_id=run.run_id, state=state))


def planned(prompt: str, *, is_warm_up: bool = False) -> PlannedRun:
    return PlannedRun(label=prompt, order=order(prompt), is_warm_up=is_warm_up)


@pytest.fixture
def under_test() -> GroupsUnderTest:
    return GroupsUnderTest()


def prompts_of(under_test: GroupsUnderTest) -> list[str]:
    return [generate.requests[0].prompt_text for generate in under_test.generates()]


def test_a_run_begins_when_the_one_before_it_has_ended(under_test: GroupsUnderTest) -> None:
    group = under_test.start("a", "b")
    assert prompts_of(under_test) == ["a"]

    under_test.finish(group)
    assert prompts_of(under_test) == ["a", "b"]
    assert not group.is_over
    under_test.finish(group)

    assert group.is_over
    assert group.message == ""
    assert under_test.groups.find(group.group_id) is group


def test_another_users_run_comes_in_between(under_test: GroupsUnderTest) -> None:
    group = under_test.start("a", "b")
    under_test.hub.submit(order("other"))

    under_test.finish(group)

    assert prompts_of(under_test) == ["a", "other"]


def test_warm_ups_are_neither_compared_nor_kept(under_test: GroupsUnderTest) -> None:
    group = under_test.groups.start([planned("w", is_warm_up=True), planned("a")])
    under_test.finish(group)
    under_test.finish(group)

    assert group.compared_ids == (group.runs[1].run_id,)
    assert [run.is_kept for run in group.runs] == [False, True]


def test_a_run_that_rests_on_disturbed_steps_is_made_again_and_the_quietest_compared(
    under_test: GroupsUnderTest,
) -> None:
    group = under_test.start("a", "b")

    under_test.finish(group, lost=[0.5, 0.5])
    under_test.finish(group, lost=[0.0, 0.5, 0.0])
    under_test.finish(group, lost=[0.0, 0.0])

    assert prompts_of(under_test) == ["a", "a", "b"]
    assert group.planned[1].label == "a, again, since other programs disturbed it"
    assert group.compared_ids == (group.runs[1].run_id, group.runs[2].run_id)
    assert group.is_over


def test_a_run_is_made_again_three_times_at_most(under_test: GroupsUnderTest) -> None:
    group = under_test.start("a")

    for ratio in (0.9, 0.2, 0.4, 0.6):
        under_test.finish(group, lost=[ratio, ratio])

    assert group.is_over
    assert [one.attempt for one in group.planned] == [1, 2, 3, 4]
    assert len(group.compared_ids) == 1


def test_a_warm_up_is_made_once_however_disturbed(under_test: GroupsUnderTest) -> None:
    group = under_test.groups.start([planned("w", is_warm_up=True), planned("a")])

    under_test.finish(group, lost=[0.9, 0.9])
    under_test.finish(group, lost=[0.0, 0.0])

    assert len(group.runs) == 2


def test_a_prompt_that_does_not_fit_fails_and_the_rest_goes_on(
    under_test: GroupsUnderTest,
) -> None:
    group = under_test.start("a", "x" * 100, "c")
    under_test.finish(group)
    assert prompts_of(under_test) == ["a", "c"]

    under_test.finish(group)

    assert [run.state for run in group.runs] == [RunState.DONE, RunState.FAILED, RunState.DONE]
    assert "the model takes 64" in group.runs[1].message
    assert group.is_over


def test_an_engine_that_dies_costs_one_run(under_test: GroupsUnderTest) -> None:
    group = under_test.start("a", "b")

    under_test.engine.reply(EngineDied(exit_code=-9))
    under_test.engine.reply(model_ready())
    under_test.finish(group)

    assert [run.state for run in group.runs] == [RunState.FAILED, RunState.DONE]
    assert group.is_over


def test_stopping_ends_the_group_and_keeps_what_was_made(under_test: GroupsUnderTest) -> None:
    group = under_test.start("a", "b", "c")
    under_test.finish(group)

    under_test.groups.stop(group)
    under_test.finish(group, RunState.STOPPED)

    assert group.is_over
    assert len(group.runs) == len(group.compared_ids) == 2
    assert "stopped" in group.message


def test_a_group_that_nobody_watches_ends_but_a_hidden_tab_has_minutes(
    under_test: GroupsUnderTest,
) -> None:
    group = under_test.start("a", "b")
    under_test.time_s += GRACE_S * 3
    under_test.hub.abandon_unwatched()
    under_test.groups.touch(group)
    under_test.time_s += GRACE_S * 3.9
    under_test.hub.abandon_unwatched()
    assert not group.runs[0].is_abandoned

    under_test.time_s += GRACE_S
    under_test.hub.abandon_unwatched()
    under_test.finish(group, RunState.STOPPED)

    assert group.is_over
    assert len(group.runs) == 1
    assert "nobody was watching" in group.message


@pytest.mark.parametrize(
    ("prompts", "kind", "sentence"),
    [
        ([], InputError, "nothing is chosen"),
        (["a", " "], PromptError, "empty"),
        (["x" * 100, "a"], PromptError, "the model takes 64"),
        (["a"] * (MAX_RUNS + 1), InputError, "161 runs; 160 at most"),
    ],
    ids=["none", "an empty one", "a long one first", "too many"],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    under_test: GroupsUnderTest, prompts: list[str], kind: type[InputError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        under_test.start(*prompts)

    assert under_test.generates() == []
