"""Figures carried on from step to step are those of the whole run, after every step."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from inference.figures.latency import batch_tokens_per_s, latency_summaries, latency_summary
from inference.figures.running_latency import RunningLatency
from inference.records.options import BatchPlan, Policy
from inference.records.run import RunTrace
from tests.visuals.batches import batch_trace

PLANS = [
    BatchPlan(),
    BatchPlan(slots=2),
    BatchPlan(policy=Policy.CONTINUOUS, slots=2),
]


def _uneven(trace: RunTrace) -> RunTrace:
    """Return the run with step times of many lengths, cold steps and observed ones."""
    events = tuple(
        replace(
            event,
            duration_s=0.01 * (1 + event.index * 7 % 5) + 0.003 * (event.index % 3),
            cold=event.index < 2,
            observed=event.index % 4 == 3,
        )
        for event in trace.events
    )
    return replace(trace, events=events)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_after_every_step_they_are_those_of_the_run_so_far(plan: BatchPlan) -> None:
    trace = _uneven(batch_trace(plan, (6, 2, 4, 9), (3, 7, 2, 12), gap_s=0.4, chunk_tokens=3))
    running = RunningLatency(trace.requests)

    for steps, event in enumerate(trace.events, start=1):
        running.add(event)

        upto = replace(trace, events=trace.events[:steps])
        expected = [_approximate(asdict(one)) for one in latency_summaries(upto)]
        assert [asdict(one) for one in running.summaries()] == expected
        assert running.batch_tokens_per_s() == pytest.approx(batch_tokens_per_s(upto))


def test_one_request_is_summed_up_by_its_id() -> None:
    trace = _uneven(batch_trace(PLANS[2], gap_s=0.4))
    running = RunningLatency(trace.requests)
    for event in trace.events:
        running.add(event)

    summary = running.summary("r1")

    assert summary.itl_s == pytest.approx(latency_summary(trace, "r1").itl_s, abs=1e-12)
    assert summary.interrupted == latency_summary(trace, "r1").interrupted


def test_before_the_first_step_nothing_is_known() -> None:
    running = RunningLatency(batch_trace(BatchPlan()).requests)

    assert {one.ttft_s for one in running.summaries()} == {None}
    assert running.batch_tokens_per_s() is None


def _approximate(fields: dict[str, object]) -> dict[str, object]:
    """Return fields that also equal numbers whose last digits were rounded otherwise."""
    return {
        name: pytest.approx(value, abs=1e-12) if _is_number(value) else value
        for name, value in fields.items()
    }


def _is_number(value: object) -> bool:
    numbers = value if isinstance(value, tuple) else (value,)
    return bool(numbers) and all(isinstance(number, float) for number in numbers)
