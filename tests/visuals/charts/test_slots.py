"""Who sits in which slot, and the timeline of the slots, as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.latency import RunningLatency, latency_summaries
from inference.records.options import BatchPlan, CacheKind, Policy
from inference.records.run import RunTrace
from inference.records.steps import Phase
from tests.visuals.batches import STEP_TIME_S, batch_trace
from visuals.charts.batch_bytes import latency_table, rates, shared_and_own, step_picture
from visuals.charts.slots import QUEUE, slot_steps, slot_timeline, span_rows

STATIC = BatchPlan()
CONTINUOUS = BatchPlan(policy=Policy.CONTINUOUS, slots=2)


def spans(trace: RunTrace) -> list[tuple[object, object, object, object, object]]:
    rows = span_rows(slot_steps(trace))
    return [(row["lane"], row["request"], row["kind"], row["from"], row["to"]) for row in rows]


def test_a_row_that_is_done_is_padding_until_its_static_batch_is_over() -> None:
    trace = batch_trace(STATIC)

    assert spans(trace) == [
        (0, "1", "prefill", 0.0, 0.5),
        (1, "2", "prefill", 0.0, 0.5),
        (2, "3", "prefill", 0.0, 0.5),
        (0, "1", "decode", 0.5, 1.5),
        (1, "2", "decode", 0.5, 3.0),
        (2, "3", "decode", 0.5, 1.0),
        (2, "3", "padding", 1.0, 3.0),
        (0, "1", "padding", 1.5, 3.0),
    ]


def test_a_free_slot_is_refilled_while_the_others_wait_for_its_prefill() -> None:
    trace = batch_trace(CONTINUOUS)

    assert spans(trace) == [
        (QUEUE, "2 wait", "queue", 0.0, 0.5),
        (0, "1", "prefill", 0.0, 0.5),
        (QUEUE, "1 waits", "queue", 0.5, 2.0),
        (0, "1", "waiting", 0.5, 1.0),
        (1, "2", "prefill", 0.5, 1.0),
        (0, "1", "decode", 1.0, 2.0),
        (1, "2", "decode", 1.0, 2.0),
        (0, "3", "prefill", 2.0, 2.5),
        (1, "2", "waiting", 2.0, 2.5),
        (0, "3", "decode", 2.5, 3.0),
        (1, "2", "decode", 2.5, 4.0),
    ]


def test_a_request_waits_from_its_arrival_on_and_not_from_the_step_it_came_in() -> None:
    """The queue began with the step, beside a table that said when each request arrives."""
    trace = batch_trace(CONTINUOUS, (6, 2, 4, 2), (3, 3, 3, 1), gap_s=0.1)

    queue = [span for span in spans(trace) if span[0] == QUEUE]

    assert [span[1] for span in queue[:3]] == ["1 waits", "2 wait", "3 wait"]
    assert [span[3] for span in queue[:3]] == [0.1, 0.2, 0.3]
    assert queue[2][4] == 0.5


def test_idle_time_is_a_gap_in_every_lane() -> None:
    trace = batch_trace(BatchPlan(slots=1), (2, 2), (1, 1), gap_s=9.0)

    assert spans(trace) == [(0, "1", "prefill", 0.0, 0.5), (0, "2", "prefill", 9.0, 9.5)]


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("plan", [STATIC, CONTINUOUS, BatchPlan(slots=2)], ids=str)
def test_every_step_fills_its_step_time_in_each_taken_lane(
    plan: BatchPlan, chunk: int | None
) -> None:
    trace = batch_trace(plan, chunk_tokens=chunk)

    steps = list(slot_steps(trace))

    assert [step.ended_s for step in steps] == [STEP_TIME_S * (at + 1) for at in range(len(steps))]
    assert len(steps) > 3
    for step in steps:
        assert sum(assignment.fed for assignment in step.assigned) == step.event.query_tokens
        assert all(assignment.stored <= step.columns for assignment in step.assigned)


def test_the_picture_of_a_step_shows_padding_before_and_behind_a_row() -> None:
    *_, last = slot_steps(batch_trace(STATIC))

    picture = step_picture(last, [6, 2, 4], Policy.STATIC)

    assert (picture["T"], picture["columns"]) == (1, 11)
    # request, what it does, fed, stored, is done, padding behind it
    assert picture["rows"] == [
        [0, "padding", 0, 8, 1, 3],
        [1, "decode", 1, 7, 1, 0],
        [2, "padding", 0, 5, 1, 4],
    ]
    assert picture["strips"] == [[0, 0, 8], [1, 1, 7], [2, 0, 5]]


def test_weights_are_shared_and_each_row_that_is_fed_has_its_own_bytes() -> None:
    first, *_ = slot_steps(batch_trace(STATIC))

    shared = shared_and_own(first, batch_trace(STATIC).info)

    assert shared["own"] == [[0, round(6 * 64 / 2**20, 6)], [1, round(2 * 64 / 2**20, 6)],
                             [2, round(4 * 64 / 2**20, 6)]]  # fmt: skip
    assert shared["weights_mib"] == round(4096 / 2**20, 6)


def test_a_quantised_batch_is_counted_with_the_bytes_it_stores() -> None:
    """Its rows were counted with four bytes a number beside a cache that measured one."""
    trace = batch_trace(STATIC)
    first, *_ = slot_steps(trace)

    shared = shared_and_own(first, replace(trace.info, cache=CacheKind.QUANTISED))

    assert shared["own"] == [[0, round(6 * 16 / 2**20, 6)], [1, round(2 * 16 / 2**20, 6)],
                             [2, round(4 * 16 / 2**20, 6)]]  # fmt: skip


def test_rates_are_of_decode_steps_alone() -> None:
    trace = batch_trace(STATIC)

    assert rates(RunningLatency(trace.requests, trace.events)) == {"each": "2.00", "all": "3.20"}


def test_the_rate_of_one_row_and_of_all_rows_rest_on_the_same_steps() -> None:
    """With two slots, all rows read 4.7 times one row, whose time held the others' prefills."""
    trace = batch_trace(CONTINUOUS)

    told = rates(RunningLatency(trace.requests, trace.events))

    # Five decode steps of half a second feed nine rows' tokens in all.
    decode = [event for event in trace.events if event.phase is Phase.DECODE]
    rows = sum(len(event.rows) for event in decode) / len(decode)
    assert told == {"each": "2.00", "all": f"{2 * rows:.2f}"}
    assert 1 < rows < 2


def test_each_request_has_a_line_with_its_wait_and_what_held_it_up() -> None:
    trace = batch_trace(CONTINUOUS, gap_s=0.25)

    lines = latency_table(trace.requests, latency_summaries(trace))

    assert [line[:4] for line in lines] == [
        ["1", "0\u00a0s", "0\u00a0s", "0.500\u00a0s"],
        ["2", "0.250\u00a0s", "0.250\u00a0s", "0.750\u00a0s"],
        ["3", "0.500\u00a0s", "1.50\u00a0s", "2.00\u00a0s"],
    ]
    assert [line[-1] for line in lines] == ["1\u00d7", "1\u00d7", "\u2013"]


def test_the_timeline_is_a_chart_of_named_rows() -> None:
    spec = slot_timeline(batch_trace(CONTINUOUS)).to_dict()

    rows = spec["datasets"]["slot_spans"]
    assert {row["lane"] for row in rows} == {QUEUE, 0, 1}
    encoding = spec["layer"][0]["encoding"]
    assert encoding["x"]["title"] == "run time, s"
    assert encoding["color"]["scale"]["domain"][:2] == ["prefill", "decode"]


def test_an_empty_run_has_an_empty_timeline() -> None:
    trace = batch_trace(STATIC, (), ())

    assert slot_timeline(trace).to_dict()["datasets"]["slot_spans"] == []
    assert "datasets" not in slot_timeline().to_dict()
