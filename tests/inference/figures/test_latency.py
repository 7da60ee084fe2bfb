"""Latency figures on scripted step times, worked by hand; sums of powers of two are exact."""

from __future__ import annotations

import numpy as np
import pytest

from inference.figures.latency import (
    RunningLatency,
    batch_tokens_per_s,
    latency_summaries,
    latency_summary,
    percentile,
)
from inference.records.errors import InputError
from inference.records.latency import LatencySummary
from inference.records.steps import StepEvent
from tests.inference.figures.scripted_steps import decode, prefill, trace_of


@pytest.mark.golden
def test_one_request_alone_worked_by_hand() -> None:
    trace = trace_of(prefill(2.0, "a"), decode(0.25, "a"), decode(0.5, "a"), decode(0.75, "a"))

    summary = latency_summary(trace, "a")

    assert summary == LatencySummary(
        request_id="a",
        output_tokens=4,
        ttft_s=2.0,
        itl_s=(0.25, 0.5, 0.75),
        itl_p50_s=0.5,
        itl_p95_s=pytest.approx(0.725, abs=1e-12),
        tpot_s=0.5,
        e2e_s=3.5,
        sequence_tokens_per_s=2.0,
        e2e_tokens_per_s=4 / 3.5,
        is_cold=False,
        excluded_steps=0,
        wait_s=0.0,
    )


@pytest.mark.golden
def test_tpot_is_e2e_less_ttft_over_the_intervals() -> None:
    trace = trace_of(prefill(3.0, "a"), decode(0.125, "a"), decode(4.0, "a"))

    summary = latency_summary(trace, "a")

    assert summary.e2e_s == 7.125
    assert summary.tpot_s == (7.125 - 3.0) / 2


@pytest.mark.golden
def test_waiting_for_a_slot_is_part_of_ttft() -> None:
    trace = trace_of(
        prefill(2.0, "a"), decode(0.5, "a"), prefill(1.0, "b"), decode(0.25, "b"), requests="ab"
    )

    assert latency_summary(trace, "b").ttft_s == 3.5
    assert latency_summary(trace, "b").itl_s == (0.25,)
    assert latency_summary(trace, "a").ttft_s == 2.0


@pytest.mark.golden
def test_another_rows_prefill_between_two_tokens_counts_as_waiting() -> None:
    trace = trace_of(
        prefill(1.0, "a"),
        decode(0.25, "a"),
        prefill(4.0, "b"),
        decode(0.5, "a", "b"),
        requests="ab",
    )

    assert latency_summary(trace, "a").itl_s == (0.25, 4.5)


@pytest.mark.golden
def test_chunks_of_prefill_that_select_nothing_add_up_to_ttft() -> None:
    trace = trace_of(prefill(1.0, "a-"), prefill(2.0, "a-"), prefill(4.0, "a"), decode(0.5, "a"))

    summary = latency_summary(trace, "a")

    assert summary.ttft_s == 7.0
    assert summary.output_tokens == 2


def test_step_times_after_the_last_token_of_a_request_are_not_its_own() -> None:
    trace = trace_of(prefill(1.0, "a", "b"), decode(0.5, "a", "b"), decode(8.0, "b"), requests="ab")

    assert latency_summary(trace, "a").e2e_s == 1.5
    assert latency_summary(trace, "b").e2e_s == 9.5


def test_one_token_has_no_interval() -> None:
    summary = latency_summary(trace_of(prefill(2.0, "a")), "a")

    assert (summary.ttft_s, summary.e2e_s, summary.output_tokens) == (2.0, 2.0, 1)
    assert summary.itl_s == ()
    assert (summary.tpot_s, summary.itl_p50_s, summary.itl_p95_s) == (None, None, None)
    assert summary.sequence_tokens_per_s is None


@pytest.mark.parametrize("events", [(), (prefill(1.0, "a-"),)], ids=["no event", "no token"])
def test_before_the_first_token_everything_is_unknown(events: tuple[StepEvent, ...]) -> None:
    summary = latency_summary(trace_of(*events), "a")

    assert summary.output_tokens == 0
    assert (summary.ttft_s, summary.e2e_s, summary.e2e_tokens_per_s) == (None, None, None)


def test_observed_steps_are_left_out_of_headline_intervals_and_counted() -> None:
    trace = trace_of(
        prefill(2.0, "a"), decode(0.25, "a"), decode(8.0, "a", observed=True), decode(0.75, "a")
    )

    summary = latency_summary(trace, "a")

    assert summary.excluded_steps == 1
    assert summary.itl_s == (0.25, 8.0, 0.75)
    assert (summary.itl_p50_s, summary.tpot_s) == (0.5, 0.5)
    assert summary.e2e_s == 11.0


def test_an_interval_with_another_rows_observed_step_is_left_out() -> None:
    trace = trace_of(
        prefill(2.0, "a"), prefill(8.0, "b", observed=True), decode(0.5, "a"), decode(0.25, "a"),
        requests="ab",
    )  # fmt: skip

    summary = latency_summary(trace, "a")

    assert summary.excluded_steps == 1
    assert summary.itl_p95_s == 0.25


def test_where_every_step_was_observed_headline_intervals_are_unknown() -> None:
    trace = trace_of(prefill(2.0, "a"), decode(0.5, "a", observed=True))

    summary = latency_summary(trace, "a")

    assert (summary.itl_p50_s, summary.tpot_s, summary.sequence_tokens_per_s) == (None, None, None)
    assert summary.itl_s == (0.5,)


def test_a_cold_step_time_marks_only_the_requests_that_sat_through_it() -> None:
    trace = trace_of(
        prefill(1.0, "a"), decode(1.0, "a"), decode(1.0, "b", cold=True), requests="ab"
    )

    assert not latency_summary(trace, "a").is_cold
    assert latency_summary(trace, "b").is_cold


def test_step_times_of_zero_give_no_rate() -> None:
    summary = latency_summary(trace_of(prefill(0.0, "a"), decode(0.0, "a")), "a")

    assert summary.tpot_s == 0.0
    assert (summary.sequence_tokens_per_s, summary.e2e_tokens_per_s) == (None, None)


@pytest.mark.golden
def test_after_every_step_the_figures_are_those_of_the_steps_so_far() -> None:
    trace = trace_of(
        prefill(2.0, "a-", cold=True),
        prefill(1.0, "a"),
        decode(0.5, "a"),
        decode(4.0, "a", observed=True),
        prefill(1.0, "b"),
        decode(0.25, "a", "b"),
        requests="ab",
    )
    running = RunningLatency(trace.requests)
    found: list[tuple[object, ...]] = []
    rates: list[float | None] = []

    for event in trace.events:
        running.add(event)
        summary = running.summary("a")
        found.append(
            (summary.ttft_s, summary.itl_s, summary.tpot_s, summary.e2e_s, summary.excluded_steps)
        )
        rates.append(running.batch_tokens_per_s())

    assert found == [
        (None, (), None, None, 0),
        (3.0, (), None, 3.0, 0),
        (3.0, (0.5,), 0.5, 3.5, 0),
        (3.0, (0.5, 4.0), 0.5, 7.5, 1),
        (3.0, (0.5, 4.0), 0.5, 7.5, 1),
        (3.0, (0.5, 4.0, 1.25), 0.875, 8.75, 1),
    ]
    assert rates == [None, None, 2.0, 2.0, 2.0, 4.0]
    assert running.summary("a").interrupted == (2,)
    assert [one.is_cold for one in running.summaries()] == [True, True]


def test_before_the_first_step_nothing_is_known() -> None:
    running = RunningLatency(trace_of(requests="ab").requests)

    assert [one.ttft_s for one in running.summaries()] == [None, None]
    assert [one.wait_s for one in running.summaries()] == [None, None]
    assert running.batch_tokens_per_s() is None


@pytest.mark.golden
def test_percentiles_of_unsorted_intervals_are_those_by_size() -> None:
    step_times_s = (0.75, 0.25, 1.0, 0.5)
    trace = trace_of(prefill(1.0, "a"), *(decode(step_time_s, "a") for step_time_s in step_times_s))

    summary = latency_summary(trace, "a")

    assert summary.itl_s == step_times_s
    assert summary.itl_p50_s == 0.625
    assert summary.itl_p95_s == pytest.approx(0.9625, abs=1e-12)


def test_all_requests_at_once_give_what_each_gives_alone() -> None:
    trace = trace_of(
        prefill(1.0, "a"),
        prefill(2.0, "b"),
        decode(0.5, "a", "b"),
        decode(0.25, "b"),
        requests="abc",
    )

    summaries = latency_summaries(trace)

    assert summaries == tuple(latency_summary(trace, name) for name in "abc")


def test_an_unknown_request_is_refused() -> None:
    with pytest.raises(InputError, match="no request 'z'"):
        latency_summary(trace_of(prefill(1.0, "a")), "z")


@pytest.mark.golden
def test_batch_throughput_counts_all_rows_of_decode_steps_only() -> None:
    trace = trace_of(
        prefill(100.0, "a", "b"), decode(0.25, "a", "b"), decode(0.25, "a"), requests="ab"
    )

    assert batch_tokens_per_s(trace) == 6.0


def test_batch_throughput_leaves_observed_steps_out() -> None:
    trace = trace_of(prefill(1.0, "a"), decode(0.5, "a"), decode(9.5, "a", observed=True))

    assert batch_tokens_per_s(trace) == 2.0


def test_batch_throughput_before_any_decode_step_is_unknown() -> None:
    assert batch_tokens_per_s(trace_of(prefill(1.0, "a"))) is None


@pytest.mark.golden
@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.5),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.95, 4.8),
        ([7.0], 0.95, 7.0),
        ([1.0, 3.0], 0.0, 1.0),
        ([1.0, 3.0], 1.0, 3.0),
    ],
)
def test_percentiles_run_straight_between_sorted_values(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == pytest.approx(expected, abs=1e-12)


def test_a_percentile_of_nothing_is_unknown() -> None:
    assert percentile([], 0.5) is None


def test_long_runs_agree_with_a_plain_loop() -> None:
    step_times_s = np.random.default_rng(5).uniform(0.01, 0.1, size=600).tolist()
    trace = trace_of(prefill(1.0, "a"), *(decode(step_time_s, "a") for step_time_s in step_times_s))

    summary = latency_summary(trace, "a")

    assert list(summary.itl_s) == step_times_s
    assert summary.e2e_s == pytest.approx(1.0 + sum(step_times_s), rel=1e-12)
