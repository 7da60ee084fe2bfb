"""Measurements in the hub: between runs, one at a time, and told to the runs made here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.process.messages import (
    EngineDied,
    MeasureCeilings,
    MeasureEnded,
    Measuring,
    RunEnded,
    RunStarted,
    SplitSteps,
    StopMeasuring,
    SweepTokens,
)
from inference.records.errors import InputError
from inference.records.options import DecodeMode
from inference.records.status import LoadStage, RunState
from tests.builders import TINY_DEVICE, model_ready, order, run_info
from tests.visuals.live_doubles import MEASURED, HubUnderTest
from visuals.live.calibration import NOT_KEPT
from visuals.live.hub import UNWATCHED_SPLIT, WATCHED_SPLIT


@pytest.fixture
def hub() -> HubUnderTest:
    under_test = HubUnderTest()
    under_test.load()
    return under_test


def test_an_idle_engine_measures_at_once_and_tells_how_far_it_is(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())
    assert hub.engine.commands[-1] == MeasureCeilings()

    hub.engine.reply(Measuring(stage=LoadStage(stage="reading", ratio=0.5)))

    status = hub.hub.measure_status()
    assert status.kind is MeasureCeilings
    assert status.stage == LoadStage(stage="reading", ratio=0.5)
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    assert hub.hub.measure_status().ceilings == MEASURED
    assert hub.hub.measure_status().kind is None


def test_a_measurement_waits_for_the_run_that_is_on_and_goes_before_the_next(
    hub: HubUnderTest,
) -> None:
    first = hub.begin()
    second = hub.hub.submit(order("b"))

    hub.hub.measure(SweepTokens(counts=(1, 2)))
    assert hub.hub.measure_status().is_waiting
    hub.engine.reply(RunEnded(run_id=first.run_id, state=RunState.DONE))

    assert hub.engine.commands[-1] == SweepTokens(counts=(1, 2))
    assert second.state is RunState.QUEUED
    hub.engine.reply(MeasureEnded(sentence="stopped"))
    assert hub.generates()[-1].run_id == second.run_id


def test_a_run_started_meanwhile_waits_for_the_measurement(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())

    run = hub.hub.submit(order("b"))

    assert hub.generates() == []
    assert hub.hub.status(run).queue_position == 1
    assert "is being measured" in hub.hub.status(run).message
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))
    assert hub.generates()[-1].run_id == run.run_id


def test_one_measurement_at_a_time(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())

    with pytest.raises(InputError, match="already in progress"):
        hub.hub.measure(SweepTokens(counts=(1,)))


def test_a_stop_reaches_the_engine_and_one_that_waits_is_forgotten(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())
    hub.hub.stop_measuring()
    assert hub.engine.commands[-1] == StopMeasuring()
    hub.engine.reply(MeasureEnded(sentence="stopped; nothing was changed"))

    hub.begin()
    hub.hub.measure(MeasureCeilings())
    hub.hub.stop_measuring()

    assert hub.hub.measure_status().kind is None
    assert "stopped before it began" in hub.hub.measure_status().sentence


def test_roofs_kept_from_before_come_with_the_model(hub: HubUnderTest) -> None:
    hub.engine.reply(replace(model_ready(), ceilings=MEASURED))

    assert hub.hub.measure_status().ceilings == MEASURED


def test_runs_made_here_before_get_the_roofs_and_others_do_not(hub: HubUnderTest) -> None:
    run = hub.begin()
    hub.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    other = replace(MEASURED, device=replace(TINY_DEVICE, dtype="bfloat16"))

    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=other))
    assert hub.hub.snapshot(run).info.ceilings is None
    hub.hub.measure(MeasureCeilings())
    hub.engine.reply(MeasureEnded(ceilings=MEASURED))

    assert hub.hub.snapshot(run).info.ceilings == MEASURED.ceilings


def test_an_engine_that_dies_ends_the_measurement_with_a_sentence(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())

    hub.engine.reply(EngineDied(exit_code=-9))

    assert hub.hub.measure_status().kind is None
    assert "exit code -9" in hub.hub.measure_status().sentence


def test_roofs_that_could_not_be_written_are_used_and_said(hub: HubUnderTest) -> None:
    hub.hub.measure(MeasureCeilings())

    hub.engine.reply(MeasureEnded(ceilings=MEASURED, is_kept=False))

    assert hub.hub.measure_status().ceilings == MEASURED
    assert hub.hub.measure_status().sentence == NOT_KEPT


def test_parts_are_timed_while_somebody_looks_at_them(hub: HubUnderTest) -> None:
    run = hub.begin()

    hub.hub.split_steps(run, is_wanted=True)
    hub.hub.split_steps(run, is_wanted=True)
    hub.hub.split_steps(run, is_wanted=False)

    asked = [command for command in hub.engine.commands if isinstance(command, SplitSteps)]
    assert [command.every for command in asked] == [WATCHED_SPLIT, None]


@pytest.mark.parametrize(
    ("begun", "decode", "after"),
    [
        (UNWATCHED_SPLIT, DecodeMode.EAGER, UNWATCHED_SPLIT),
        (WATCHED_SPLIT, DecodeMode.EAGER, UNWATCHED_SPLIT),
        (WATCHED_SPLIT, DecodeMode.GRAPH, None),
        (1, DecodeMode.EAGER, 1),
    ],
)
def test_once_nobody_looks_any_more_parts_are_timed_as_before(
    hub: HubUnderTest, begun: int, decode: DecodeMode, after: int | None
) -> None:
    run = hub.hub.submit(replace(order("a"), split_every=begun, decode=decode))
    hub.engine.reply(RunStarted(info=run_info(run.run_id)))
    run.split_every = WATCHED_SPLIT

    hub.hub.split_steps(run, is_wanted=False)

    assert hub.engine.commands[-1] == SplitSteps(run_id=run.run_id, every=after)
