"""Latency of requests that arrive late and wait for a slot, worked by hand; times are exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.goodput import goodput
from inference.figures.latency import latency_summary, run_seconds
from inference.records.run import RunTrace
from inference.records.steps import Finish, StepEvent
from tests.inference.figures.scripted_steps import decode, prefill, trace_of

pytestmark = pytest.mark.golden


def arriving(trace: RunTrace, **arrivals_s: float) -> RunTrace:
    requests = tuple(
        replace(one, arrival_s=arrivals_s.get(one.request_id, 0.0)) for one in trace.requests
    )
    return replace(trace, requests=requests)


def ended(event: StepEvent) -> StepEvent:
    """Return the step with every row's last token in it."""
    return replace(event, rows=tuple(replace(row, finish=Finish.EOS) for row in event.rows))


def two_requests() -> RunTrace:
    """Return a run in which b arrives in a's first decode step and is fed after it."""
    trace = trace_of(
        prefill(2.0, "a"),
        decode(0.5, "a"),
        prefill(1.0, "b"),
        ended(decode(0.25, "a", "b")),
        requests="ab",
    )
    return arriving(trace, b=2.25)


def test_ttft_runs_from_the_arrival_and_holds_the_wait_for_a_slot() -> None:
    summary = latency_summary(two_requests(), "b")

    assert summary.wait_s == 0.25
    assert summary.ttft_s == 1.25
    assert summary.e2e_s == 1.5


def test_intervals_with_another_rows_prefill_in_them_are_marked() -> None:
    assert latency_summary(two_requests(), "a").itl_s == (0.5, 1.25)
    assert latency_summary(two_requests(), "a").interrupted == (1,)
    assert latency_summary(two_requests(), "b").interrupted == ()


def test_an_idle_wait_is_in_the_runs_time_and_in_no_latency() -> None:
    late = replace(prefill(1.0, "b"), waited_s=4.0)
    trace = trace_of(ended(prefill(2.0, "a")), late, decode(0.5, "b"), requests="ab")

    summary = latency_summary(arriving(trace, b=6.0), "b")

    assert run_seconds(trace.events) == 7.5
    assert (summary.wait_s, summary.ttft_s, summary.itl_s) == (0.0, 1.0, (0.5,))


def test_the_wait_is_known_before_the_first_token() -> None:
    trace = arriving(trace_of(prefill(2.0, "a"), prefill(1.0, "b-"), requests="ab"), b=0.5)

    summary = latency_summary(trace, "b")

    assert (summary.wait_s, summary.ttft_s) == (1.5, None)


def test_goodput_counts_finished_requests_that_keep_both_limits() -> None:
    trace = two_requests()

    both = goodput(trace, ttft_s=2.0, tpot_s=1.0)
    quick = goodput(trace, ttft_s=1.5, tpot_s=1.0)
    smooth = goodput(trace, ttft_s=2.0, tpot_s=0.25)

    assert (both.good, both.finished, both.requests_per_s) == (("a", "b"), 2, 2 / 3.75)
    assert quick.good == ("b",)
    assert smooth.good == ("b",)


def test_goodput_of_a_run_without_a_step_is_unknown() -> None:
    assert goodput(trace_of(), ttft_s=1.0, tpot_s=1.0).requests_per_s is None


def test_a_request_without_a_tpot_for_observed_steps_is_undecided_and_not_good() -> None:
    """Three intervals of 10 s once kept a limit of 1 ms: an unknown TPOT was taken for 0."""
    slow = [decode(10.0, "a", observed=True) for _ in range(2)]
    trace = trace_of(prefill(1.0, "a"), *slow, ended(decode(10.0, "a", observed=True)))

    found = goodput(trace, ttft_s=2.0, tpot_s=0.001)

    assert (found.good, found.undecided, found.finished) == ((), ("a",), 1)
    assert found.requests_per_s is None


def test_a_late_first_token_decides_whatever_the_tpot() -> None:
    trace = trace_of(prefill(3.0, "a"), ended(decode(10.0, "a", observed=True)))

    found = goodput(trace, ttft_s=2.0, tpot_s=0.001)

    assert (found.good, found.undecided) == ((), ())
    assert found.requests_per_s == 0.0


def test_a_request_of_one_token_needs_to_keep_the_first_limit_only() -> None:
    found = goodput(trace_of(ended(prefill(2.0, "a"))), ttft_s=2.0, tpot_s=0.001)

    assert (found.good, found.undecided) == (("a",), ())


def test_the_rate_beside_undecided_requests_is_that_of_the_good_ones() -> None:
    trace = trace_of(
        prefill(1.0, "a", "b"), ended(decode(1.0, "a")), ended(decode(2.0, "b", observed=True)),
        requests="ab",
    )  # fmt: skip

    found = goodput(trace, ttft_s=2.0, tpot_s=1.0)

    assert (found.good, found.undecided) == (("a",), ("b",))
    assert found.requests_per_s == 0.25
