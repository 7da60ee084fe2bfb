"""Loads: when requests are planned, how many are under way, and what is kept of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from inference.records.arrivals import LoadPlan, Spacing
from inference.records.endpoints import EngineKind
from inference.records.status import RunState
from inference.remote.address import endpoint_at
from inference.remote.connection import Wire
from inference.remote.load import LoadOrder, LoadOutcome, planned_moments, run_load
from tests.inference.remote.requests import HELLO
from tests.inference.remote.scripted_server import HOLD, Received, Script, ScriptedServer, said
from tests.inference.remote.streams import CHAT, OTHER

CLOSED = LoadPlan(spacing=Spacing.CLOSED, concurrency=3, requests=9, warm_up=3)
OPEN = LoadPlan(spacing=Spacing.CONSTANT, rate_per_s=200.0, requests=10, warm_up=2)


def loaded(server: ScriptedServer, plan: LoadPlan, **order: object) -> LoadOutcome:
    async def run() -> LoadOutcome:
        async with Wire(endpoint_at(server.address)) as wire:
            wanted = {"asks": (HELLO,), "engine": EngineKind.OTHER, "extras": (), **order}
            return await run_load(wire, plan, LoadOrder(**wanted))

    return asyncio.run(run())


def test_constant_moments_are_absolute() -> None:
    plan = LoadPlan(spacing=Spacing.CONSTANT, rate_per_s=4.0, requests=4, warm_up=1)

    assert planned_moments(plan) == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_random_moments_have_the_rate_exactly_and_come_again_with_the_seed() -> None:
    plan = LoadPlan(spacing=Spacing.POISSON, rate_per_s=10.0, requests=400, warm_up=1)

    moments = planned_moments(plan)

    gaps = [after - before for before, after in pairwise(moments)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert moments[-1] == pytest.approx(40.0)
    assert spread == pytest.approx(mean, rel=0.2)  # as of an exponential distribution
    assert planned_moments(plan) == moments
    assert planned_moments(replace(plan, seed=1)) != moments
    assert planned_moments(replace(plan, requests=1, warm_up=0)) == (0.0,)


def test_a_closed_loop_keeps_as_many_under_way_as_planned(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(OTHER)
    ended: list[int] = []

    outcome = loaded(server, CLOSED, on_ended=ended.append)

    assert not outcome.is_stopped
    assert ended == list(range(1, 13))
    assert most_under_way(outcome) == 3
    assert [one.request_id for one in outcome.requests if not one.is_warm_up] == [
        f"r{number}" for number in range(9)
    ]
    assert {one.state for one in outcome.requests} == {RunState.DONE}


def most_under_way(outcome: LoadOutcome) -> int:
    """Return how many requests were under way at the busiest moment."""
    marks = [one.marks for one in outcome.requests]
    begun = [(one.sent_s, 1) for one in marks if one.sent_s is not None]
    ended = [(one.ended_s, -1) for one in marks if one.ended_s is not None]
    under_way = list(accumulate(change for _, change in sorted(begun + ended)))
    return max(under_way)


def test_warm_up_has_words_of_its_own_and_the_others_what_was_asked(
    server: ScriptedServer,
) -> None:
    server.routes[CHAT] = Script(OTHER)

    loaded(server, CLOSED)

    prompts = [one.fields["messages"][0]["content"] for one in server.received]
    assert prompts.count("Hello?") == 9
    assert len(set(prompts)) == 4
    assert all(prompt.endswith("Hello?") for prompt in prompts)


def test_cold_prompts_share_no_beginning(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(OTHER)
    turns = (("system", "Be brief."), ("user", "Hi"))

    loaded(server, replace(CLOSED, is_cold=True), asks=(HELLO, replace(HELLO, turns=turns)))

    firsts = [one.fields["messages"][0]["content"].split(".")[0] for one in server.received]
    assert len(set(firsts)) == 12


def test_an_open_loop_sends_at_its_moments_whatever_the_engine_does(
    server: ScriptedServer,
) -> None:
    server.routes[CHAT] = Script((*OTHER[:2], HOLD))

    outcome = loaded(server, OPEN, silence_s=0.5)

    planned = [one.marks.planned_s for one in outcome.requests]
    sent = [one.marks.sent_s or 0.0 for one in outcome.requests]
    assert planned == list(planned_moments(OPEN))
    assert all(after >= before for before, after in zip(planned, sent, strict=True))
    assert len(server.received) == 12  # all at once: none waited for another's end
    assert {one.state for one in outcome.requests} == {RunState.FAILED}


def test_requests_that_fail_end_no_load(server: ScriptedServer) -> None:
    def every_third_fails(_request: Received) -> Script:
        is_bad = len(server.received) % 3 == 0
        return said({"error": "full"}, 429) if is_bad else Script(OTHER)

    server.routes[CHAT] = every_third_fails

    outcome = loaded(server, CLOSED)

    states = [one.state for one in outcome.requests]
    assert (states.count(RunState.FAILED), states.count(RunState.DONE)) == (4, 8)


def test_a_load_that_is_stopped_keeps_what_came(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script((*OTHER[:2], HOLD))

    async def run() -> LoadOutcome:
        async with Wire(endpoint_at(server.address)) as wire:
            order = LoadOrder(asks=(HELLO,), engine=EngineKind.OTHER, extras=())
            task = asyncio.create_task(run_load(wire, CLOSED, order))
            await asyncio.to_thread(server.opened.wait, 20)
            task.cancel()
            return await task

    outcome = asyncio.run(run())

    assert outcome.is_stopped
    assert {one.state for one in outcome.requests} == {RunState.STOPPED}
