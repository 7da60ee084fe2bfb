"""What the engine process says of batched runs and sweeps, in this process, over a real pipe."""

from __future__ import annotations

from dataclasses import replace

from inference.process.messages import (
    CaptureAttention,
    CaptureRefused,
    Generate,
    MeasureEnded,
    Measuring,
    Reply,
    RunEnded,
    RunStarted,
    Stepped,
    SweepBatches,
)
from inference.records.attention import AttentionChoice
from inference.records.options import BatchPlan, Policy
from inference.records.status import RunState
from tests.inference.process.host_under_test import Tell, request

CONTINUOUS = BatchPlan(policy=Policy.CONTINUOUS, slots=2)
Loaded = tuple[Tell, list[Reply]]


def batch(plan: BatchPlan, *, capture: AttentionChoice | None = None) -> Generate:
    requests = tuple(
        replace(request(f"r{number}"), arrival_s=number * 0.001) for number in range(4)
    )
    return Generate(run_id="run", requests=requests, seed=0, plan=plan, capture=capture)


def test_a_continuous_run_ends_when_every_request_is_done(loaded: Loaded) -> None:
    tell, _ = loaded

    said = tell(batch(CONTINUOUS))

    [started] = [reply for reply in said if isinstance(reply, RunStarted)]
    events = [reply.event for reply in said if isinstance(reply, Stepped)]
    [ended] = [reply for reply in said if isinstance(reply, RunEnded)]
    assert started.info.plan == CONTINUOUS
    assert sum(row.finish is not None for event in events for row in event.rows) == 4
    assert ended.state is RunState.DONE


def test_capturing_is_refused_with_a_reason_where_rows_come_and_go(loaded: Loaded) -> None:
    tell, _ = loaded

    said = tell(batch(CONTINUOUS, capture=AttentionChoice(layer=0)))
    later = tell(CaptureAttention(run_id="run", choice=AttentionChoice(layer=0)))

    for replies in (said, later):
        [refused] = [reply for reply in replies if isinstance(reply, CaptureRefused)]
        assert "use the static policy" in refused.sentence


def test_a_sweep_reports_every_point_as_it_comes(loaded: Loaded) -> None:
    tell, _ = loaded

    said = tell(SweepBatches(batches=(1, 2), contexts=(16,)))

    shown = [r.batches for r in said if isinstance(r, Measuring) and r.batches is not None]
    [ended] = [reply for reply in said if isinstance(reply, MeasureEnded)]
    assert [len(sweep.points) for sweep in shown] == [0, 1, 2, 2]
    assert ended.batches is not None
    assert ended.batches.is_whole
    assert ended.sentence == ""


def test_a_sweep_that_cannot_be_made_says_why(loaded: Loaded) -> None:
    tell, _ = loaded

    [ended] = [
        reply
        for reply in tell(SweepBatches(batches=(), contexts=(16,)))
        if isinstance(reply, MeasureEnded)
    ]

    assert "nothing is chosen to measure" in ended.sentence
