"""The run registry: one queue, one engine, runs that outlive their pages."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest

from inference.process.messages import (
    Action,
    Control,
    EngineDied,
    LoadFailed,
    Loading,
    LoadModel,
    RunEnded,
    RunStarted,
    StateChanged,
)
from inference.records.errors import InputError, PromptError
from inference.records.model import TokenizerFiles
from inference.records.options import CacheKind, DecodeMode
from inference.records.status import LoadStage, RunState
from tests.builders import DEFAULT_LOAD, byte_id, model_ready, order, run_info
from tests.visuals.live_doubles import GRACE_S, HubUnderTest
from visuals.live.registry import FIRST_VIEWER_S


@pytest.fixture
def under_test() -> HubUnderTest:
    return HubUnderTest()


def test_the_first_run_loads_its_model_and_is_fed_its_own_ids(under_test: HubUnderTest) -> None:
    run = under_test.hub.submit(order("hello"))
    assert run.state is RunState.LOADING
    assert under_test.engine.commands == [DEFAULT_LOAD]

    under_test.engine.reply(model_ready())

    [generate] = under_test.generates()
    assert generate.run_id == run.run_id
    assert generate.requests[0].prompt_ids == tuple(byte_id(letter) for letter in "hello")


def test_events_become_the_runs_trace_with_text_and_bytes(under_test: HubUnderTest) -> None:
    run = under_test.begin("hi")
    under_test.step(run, 0, "o")
    under_test.step(run, 1, "k")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    trace = under_test.hub.snapshot(run)

    assert trace is not None
    assert trace.state is RunState.DONE
    assert [event.index for event in trace.events] == [0, 1]
    assert trace.outputs[0].text == "ok"
    assert {piece.raw for piece in trace.pieces} == {b"h", b"i", b"o", b"k"}


def test_a_second_run_waits_for_the_first_and_knows_its_place(under_test: HubUnderTest) -> None:
    first = under_test.begin()
    second, third = under_test.hub.submit(order("b")), under_test.hub.submit(order("c"))

    assert [under_test.hub.status(run).queue_position for run in (first, second, third)] == [
        None,
        1,
        2,
    ]
    assert len(under_test.generates()) == 1

    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))

    assert under_test.generates()[-1].run_id == second.run_id
    assert under_test.hub.status(third).queue_position == 1


def test_another_model_is_loaded_only_when_its_run_is_next(under_test: HubUnderTest) -> None:
    first = under_test.begin()
    other = LoadModel(model="other")
    second = under_test.hub.submit(order("b", load=other))
    assert other not in under_test.engine.commands

    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))

    assert under_test.engine.commands[-1] == other
    assert second.state is RunState.LOADING


def test_a_model_that_does_not_load_fails_its_run_and_not_the_next(
    under_test: HubUnderTest,
) -> None:
    missing = LoadModel(model="nobody/nothing")
    first = under_test.hub.submit(order("a", load=missing))
    second = under_test.hub.submit(order("b"))

    under_test.engine.reply(LoadFailed(request=missing, sentence="there is no such model"))

    assert (first.state, first.message) == (RunState.FAILED, "there is no such model")
    assert under_test.engine.commands[-1] == DEFAULT_LOAD
    under_test.engine.reply(model_ready())
    assert under_test.generates()[-1].run_id == second.run_id


def test_a_tokenizer_that_cannot_be_read_fails_its_run_with_a_sentence(
    under_test: HubUnderTest,
) -> None:
    run = under_test.hub.submit(order("a"))
    broken = TokenizerFiles(tokenizer_json="{}")

    under_test.engine.reply(dataclasses.replace(model_ready(), tokenizer_files=broken))

    assert run.state is RunState.FAILED
    assert "tokenizer cannot be read" in run.message


def test_an_engine_that_dies_keeps_the_run_so_far_and_the_next_run_starts_anew(
    under_test: HubUnderTest,
) -> None:
    run = under_test.begin()
    under_test.step(run, 0, "x")

    under_test.engine.reply(EngineDied(exit_code=-9))

    trace = under_test.hub.snapshot(run)
    assert trace is not None
    assert trace.state is RunState.FAILED
    assert "exit code -9" in trace.message
    assert len(trace.events) == 1
    following = under_test.hub.submit(order("again"))
    assert under_test.engine.commands[-1] == DEFAULT_LOAD
    under_test.engine.reply(model_ready())
    assert under_test.generates()[-1].run_id == following.run_id


def test_an_engine_that_dies_while_loading_fails_only_the_run_that_wanted_the_model(
    under_test: HubUnderTest,
) -> None:
    first = under_test.hub.submit(order("a"))
    under_test.engine.reply(EngineDied(exit_code=1))
    assert first.state is RunState.FAILED

    second = under_test.hub.submit(order("b"))
    under_test.engine.reply(model_ready())

    assert under_test.generates()[-1].run_id == second.run_id


def test_a_waiting_run_can_be_stopped_before_it_begins(under_test: HubUnderTest) -> None:
    under_test.begin()
    second = under_test.hub.submit(order("b"))

    under_test.hub.control(second, Action.STOP)

    assert second.state is RunState.STOPPED
    assert under_test.hub.snapshot(second) is None


def test_steps_asked_for_while_the_model_loads_are_taken_when_it_is_there(
    under_test: HubUnderTest,
) -> None:
    run = under_test.hub.submit(order("a"))
    under_test.hub.control(run, Action.STEP)

    under_test.engine.reply(model_ready())

    assert under_test.engine.commands[-1] == Control(run_id=run.run_id, action=Action.STEP)


def test_pausing_is_what_the_engine_says_it_is(under_test: HubUnderTest) -> None:
    run = under_test.begin()
    under_test.hub.control(run, Action.PAUSE)
    assert run.state is RunState.RUNNING

    under_test.engine.reply(StateChanged(run_id=run.run_id, state=RunState.PAUSED))

    assert under_test.hub.status(run).state is RunState.PAUSED


def test_a_run_nobody_watches_is_stopped_after_the_grace_time(under_test: HubUnderTest) -> None:
    run = under_test.begin()
    under_test.hub.watch(run)
    under_test.time_s = 100.0
    under_test.hub.abandon_unwatched()
    assert Control(run_id=run.run_id, action=Action.STOP) not in under_test.engine.commands

    under_test.hub.leave(run)
    under_test.time_s += GRACE_S
    under_test.hub.abandon_unwatched()
    assert Control(run_id=run.run_id, action=Action.STOP) not in under_test.engine.commands
    under_test.time_s += 1
    under_test.hub.abandon_unwatched()
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.STOPPED))

    assert Control(run_id=run.run_id, action=Action.STOP) in under_test.engine.commands
    assert run.state is RunState.ABANDONED


def test_a_run_whose_first_viewer_is_still_on_its_way_is_given_more_time(
    under_test: HubUnderTest,
) -> None:
    run = under_test.begin()
    under_test.time_s += GRACE_S + FIRST_VIEWER_S
    under_test.hub.abandon_unwatched()
    assert not run.is_abandoned

    under_test.time_s += 1
    under_test.hub.abandon_unwatched()
    assert run.is_abandoned


@pytest.mark.parametrize("prompt", ["", "  \n"], ids=["empty", "blank"])
def test_an_empty_prompt_is_refused_and_nothing_is_queued(
    under_test: HubUnderTest, prompt: str
) -> None:
    with pytest.raises(PromptError, match="empty"):
        under_test.hub.submit(order(prompt))

    assert under_test.engine.commands == []


def test_a_prompt_longer_than_the_context_is_refused_at_once(under_test: HubUnderTest) -> None:
    under_test.begin()

    with pytest.raises(PromptError, match="65 tokens; the model takes 64"):
        under_test.hub.submit(order("x" * 65))

    assert len(under_test.generates()) == 1


def test_a_long_prompt_ordered_while_the_model_loads_fails_with_the_same_sentence(
    under_test: HubUnderTest,
) -> None:
    run = under_test.hub.submit(order("x" * 65))
    under_test.engine.reply(model_ready())

    assert run.state is RunState.FAILED
    assert "65 tokens; the model takes 64" in run.message
    assert under_test.generates() == []


def test_a_full_queue_is_refused_with_a_sentence(under_test: HubUnderTest) -> None:
    under_test.begin()
    for _ in range(32):
        under_test.hub.submit(order("b"))

    with pytest.raises(InputError, match="32 runs are waiting"):
        under_test.hub.submit(order("c"))


def test_a_run_that_has_ended_lets_go_of_its_models_tokenizer(under_test: HubUnderTest) -> None:
    """Each of the runs that are kept held eight megabytes of the model it was made with."""
    run = under_test.begin()
    codec = under_test.hub.codec()
    assert codec is not None
    held = weakref.ref(codec)
    del codec
    under_test.step(run, 0, "x")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    under_test.hub.submit(dataclasses.replace(order(), load=LoadModel(model="other")))
    gc.collect()

    trace = under_test.hub.snapshot(run)
    assert held() is None
    assert trace is not None
    assert trace.outputs[0].text == "x"


def test_a_run_file_opened_twice_is_the_same_run(under_test: HubUnderTest) -> None:
    run = under_test.begin()
    under_test.step(run, 0, "x")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    trace = under_test.hub.snapshot(run)
    assert trace is not None

    opened, again = under_test.hub.adopt(trace), under_test.hub.adopt(trace)

    assert opened is again
    assert under_test.hub.snapshot(opened) == trace


def test_old_finished_runs_are_forgotten_and_live_ones_are_not(under_test: HubUnderTest) -> None:
    first = under_test.begin("first")
    under_test.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))
    for _ in range(45):
        run = under_test.begin("x")
        under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    live = under_test.begin("live")

    assert under_test.hub.find(first.run_id) is None
    assert under_test.hub.find(live.run_id) is live


def test_a_run_whose_decode_step_is_prepared_shows_how_far_that_is(
    under_test: HubUnderTest,
) -> None:
    hub = under_test.hub
    hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(model_ready())

    run = hub.submit(dataclasses.replace(order(), decode=DecodeMode.GRAPH))
    under_test.engine.reply(Loading(stage=LoadStage(stage="recording the decode step")))
    before = hub.status(run)
    under_test.engine.reply(RunStarted(info=run_info(run.run_id)))

    assert under_test.generates()[-1].decode is DecodeMode.GRAPH
    assert (before.state, before.stage) == (RunState.LOADING, "recording the decode step")
    assert hub.status(run).state is RunState.RUNNING


def test_an_orders_turns_chunks_and_cache_reach_the_engine(under_test: HubUnderTest) -> None:
    turns = (("system", "a"), ("user", "b"))
    asked = dataclasses.replace(
        order("shown"),
        is_raw=False,
        turns=(turns,),
        chunk_tokens=2,
        cache=CacheKind.STATIC,
    )
    under_test.load()

    under_test.hub.submit(asked)

    [generate] = under_test.generates()
    codec = under_test.hub.codec()
    assert codec is not None
    assert codec.decode(generate.requests[0].prompt_ids) == "ab>"
    assert generate.requests[0].prompt_text == "shown"
    assert (generate.chunk_tokens, generate.cache) == (2, CacheKind.STATIC)
