"""A recorded run at an earlier moment, and its own pace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.records.status import RunState
from inference.runs.replay import LONGEST_GAP_S, run_until, step_ends_s, steps_over
from tests.visuals.traces import trace_of

TRACE = trace_of([b"a"], [b"b", b"c", b"d"], step_time_s=0.2)


def test_its_own_pace_is_step_times_and_short_gaps_and_no_long_wait() -> None:
    first, second, third = TRACE.events
    events = (first, second, replace(third, started_s=100.0))

    ends = step_ends_s(events)

    assert ends == pytest.approx((0.2, 0.2 + 0.3 + 0.2, 0.7 + LONGEST_GAP_S + 0.2))
    assert [steps_over(ends, at) for at in (0.0, 0.2, 0.69, 5.0)] == [0, 1, 1, 3]


def test_a_run_at_an_earlier_moment_knows_nothing_of_what_came_after() -> None:
    early = run_until(TRACE, 2, RunState.RUNNING)

    assert early.events == TRACE.events[:2]
    assert early.outputs[0].text == "bc"
    assert max(sample.at_s for sample in early.telemetry) <= 0.7
    assert run_until(TRACE, 0, RunState.RUNNING).telemetry == TRACE.telemetry[:1]


def test_after_its_last_step_it_is_the_run_itself() -> None:
    assert run_until(TRACE, 3, TRACE.state) == TRACE
