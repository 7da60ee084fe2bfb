"""The model put away while nobody uses it, and back with the next thing anybody does."""

from __future__ import annotations

import pytest

from inference.process.messages import MeasureCeilings, RunEnded
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, model_ready, order
from tests.visuals.live_doubles import HubUnderTest
from visuals.live.idle_model import IDLE_S


@pytest.fixture
def held() -> HubUnderTest:
    """Return a hub whose model is loaded, and used at this moment."""
    under_test = HubUnderTest(idle_limit_s=IDLE_S)
    under_test.load()
    under_test.hub.used()
    return under_test


def after(under_test: HubUnderTest, seconds: float) -> None:
    under_test.time_s += seconds
    under_test.hub.put_away_when_idle()


def loads(under_test: HubUnderTest) -> int:
    return under_test.engine.commands.count(DEFAULT_LOAD)


def test_a_model_unused_for_an_hour_is_put_away_and_said(held: HubUnderTest) -> None:
    after(held, IDLE_S - 1)
    assert not held.engine.is_retired

    after(held, 1)

    assert held.engine.is_retired
    assert held.hub.engine_status().ready is None
    assert held.hub.engine_status().stage is None
    assert "put away after an hour without use" in held.hub.engine_words()


def test_it_comes_back_when_somebody_uses_a_page(held: HubUnderTest) -> None:
    after(held, IDLE_S)

    held.hub.used()

    assert loads(held) == 2
    assert held.hub.engine_status().stage is not None
    assert held.hub.engine_words() == ""
    held.engine.reply(model_ready())
    assert held.hub.engine_status().ready is not None
    after(held, IDLE_S - 1)
    assert held.hub.engine_status().ready is not None


def test_a_run_or_a_measurement_brings_it_back_first(held: HubUnderTest) -> None:
    after(held, IDLE_S)
    run = held.hub.submit(order("hello"))
    assert (run.state, loads(held)) == (RunState.LOADING, 2)
    assert held.hub.engine_words() == ""

    under_test = HubUnderTest(idle_limit_s=IDLE_S)
    under_test.load()
    under_test.hub.used()
    after(under_test, IDLE_S)
    under_test.hub.measure(MeasureCeilings())
    assert under_test.engine.commands[-1] == DEFAULT_LOAD
    under_test.engine.reply(model_ready())
    assert under_test.engine.commands[-1] == MeasureCeilings()


def test_what_goes_on_is_use(held: HubUnderTest) -> None:
    run = held.begin()
    after(held, 10 * IDLE_S)
    assert not held.engine.is_retired

    held.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    after(held, IDLE_S - 1)
    assert not held.engine.is_retired
    after(held, 1)
    assert held.engine.is_retired


def test_a_server_that_nobody_opened_puts_its_model_away_too() -> None:
    under_test = HubUnderTest(idle_limit_s=IDLE_S)
    under_test.load()
    after(under_test, 0)

    after(under_test, IDLE_S)

    assert under_test.engine.is_retired


def test_without_a_limit_it_stays() -> None:
    under_test = HubUnderTest(idle_limit_s=0)
    under_test.load()
    under_test.hub.used()

    after(under_test, 100 * IDLE_S)

    assert not under_test.engine.is_retired


def test_a_model_that_was_never_there_is_not_put_away() -> None:
    under_test = HubUnderTest(idle_limit_s=IDLE_S)
    after(under_test, 0)
    after(under_test, IDLE_S)
    under_test.hub.used()

    assert not under_test.engine.is_retired
    assert under_test.engine.commands == []
