"""Loads that pages started: one at a time, stopped, kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.records.arrivals import LoadPlan, RemoteAsk, Spacing
from inference.records.endpoints import EngineKind
from inference.records.errors import InputError
from inference.records.options import Sampling
from inference.records.status import RunState
from inference.remote.address import endpoint_at
from inference.remote.growing import EndpointOrder
from inference.runs.load_store import LoadStore
from tests.inference.remote.scripted_server import HOLD, Script, ScriptedServer, running_server
from tests.inference.remote.streams import CHAT, VLLM, engine_routes
from visuals.live import load_runs
from visuals.live.load_runs import LoadRun, LoadRuns

ORDER = EndpointOrder(
    asks=(RemoteAsk(model_id="", prompt_text="Hi", max_new_tokens=3, sampling=Sampling(), seed=0),),
    model=None,
    silence_s=20.0,
)
PLANS = [
    LoadPlan(spacing=Spacing.CLOSED, concurrency=number, requests=3, warm_up=1) for number in (1, 2)
]
KEY = "sk-never-written"


@pytest.fixture
def engine() -> Iterator[ScriptedServer]:
    with running_server() as server:
        server.routes |= engine_routes(EngineKind.VLLM)
        yield server


@pytest.fixture
def loads(tmp_path: Path) -> Iterator[LoadRuns]:
    loads = LoadRuns(LoadStore(tmp_path))
    yield loads
    loads.end()


def started(loads: LoadRuns, engine: ScriptedServer) -> LoadRun:
    return loads.start(endpoint_at(engine.address, KEY), ORDER, PLANS)


def hold(engine: ScriptedServer) -> None:
    """Have the engine answer what it is tried with, and hold all that comes after."""
    answers = iter([Script(VLLM)])
    engine.routes[CHAT] = lambda _request: next(answers, Script((*VLLM[:2], HOLD)))


def test_a_load_sends_its_steps_and_is_kept_without_the_key(
    loads: LoadRuns, engine: ScriptedServer
) -> None:
    load = started(loads, engine)
    loads.join()

    assert (load.state, load.message, load.problem) == (RunState.DONE, "", "")
    kept = loads.store.open(load.key)
    assert [len(run.requests) for run in kept] == [4, 4]
    assert [run.load for run in kept] == PLANS
    assert {one.headers["authorization"] for one in engine.received} == {f"Bearer {KEY}"}
    assert not any(KEY in repr(run) for run in kept)


def test_one_load_goes_at_a_time_and_what_came_of_one_stopped_is_kept(
    loads: LoadRuns, engine: ScriptedServer
) -> None:
    hold(engine)
    load = started(loads, engine)
    assert engine.opened.wait(20.0)

    with pytest.raises(InputError, match="a load goes on already"):
        started(loads, engine)
    load.stop()
    loads.join()

    assert load.state is RunState.STOPPED
    assert "is kept" in load.message
    [run] = loads.store.open(load.key)
    assert run.requests[-1].state is RunState.STOPPED


def test_a_load_that_no_page_shows_is_stopped(
    loads: LoadRuns, engine: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_runs, "UNWATCHED_S", 0.0)
    monkeypatch.setattr(load_runs, "LOOK_EVERY_S", 0.01)
    hold(engine)

    load = started(loads, engine)
    loads.join()

    assert load.state is RunState.STOPPED
    assert load.message in (load_runs.UNWATCHED, load_runs.NOTHING_CAME)


def test_a_server_that_is_gone_is_a_sentence_and_nothing_is_kept(loads: LoadRuns) -> None:
    load = loads.start(endpoint_at("http://127.0.0.1:1"), ORDER, PLANS)
    loads.join()

    assert load.state is RunState.FAILED
    assert "127.0.0.1:1" in load.message
    assert loads.store.entries() == ()
