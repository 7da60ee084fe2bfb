"""Which steps count as disturbed, and what the figures of a run make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.device import notes_of
from inference.figures.disturbance import (
    disturbance,
    is_disturbed,
    rests_on_disturbed,
    undisturbed,
)
from inference.figures.latency import RunningLatency, batch_tokens_per_s, latency_summary
from inference.records.steps import StepEvent
from inference.records.telemetry import TelemetrySample
from tests.inference.figures.scripted_steps import decode, prefill, trace_of


def lost(event: StepEvent, ratio: float) -> StepEvent:
    """Return the step with this share of its time lost."""
    return replace(event, run_delay_s=ratio * event.duration_s)


@pytest.mark.parametrize(
    ("run_delay_s", "expected"),
    [(None, False), (0.0, False), (0.05, False), (0.0501, True), (1.0, True)],
    ids=["unknown", "none", "a twentieth", "more", "all"],
)
def test_a_step_that_lost_more_than_a_twentieth_is_disturbed(
    run_delay_s: float | None, expected: bool
) -> None:
    event = replace(decode(1.0, "a"), run_delay_s=run_delay_s)

    assert is_disturbed(event) is expected


def test_the_count_is_said_in_a_sentence() -> None:
    clean, bad = lost(decode(1.0, "a"), 0.0), lost(decode(1.0, "a"), 0.5)

    assert disturbance([clean] * 54 + [bad] * 9).sentence == (
        "9 of 63 steps disturbed by other programs"
    )
    assert disturbance([bad] * 4).sentence == "All 4 steps disturbed by other programs"
    assert disturbance([bad]).sentence == "The only step disturbed by other programs"
    assert disturbance([clean]).sentence == ""


def test_a_step_of_which_nothing_is_known_is_not_counted() -> None:
    count = disturbance([decode(1.0, "a"), lost(decode(1.0, "a"), 0.5)])

    assert (count.disturbed, count.steps) == (1, 1)


@pytest.mark.golden
def test_figures_are_over_undisturbed_steps_and_say_how_many_are_left_out() -> None:
    trace = trace_of(
        lost(prefill(2.0, "a"), 0.0),
        lost(decode(0.25, "a"), 0.0),
        lost(decode(4.0, "a"), 0.5),
        lost(decode(0.75, "a"), 0.01),
    )

    summary = latency_summary(trace, "a")

    assert summary.tpot_s == 0.5
    assert summary.itl_s == (0.25, 4.0, 0.75)
    assert summary.e2e_s == 7.0
    assert (summary.disturbed_steps, summary.left_out_steps) == (1, 1)
    assert not summary.is_all_disturbed
    assert not summary.is_ttft_disturbed
    assert batch_tokens_per_s(trace) == 2.0


@pytest.mark.golden
def test_where_every_step_was_disturbed_figures_are_of_all_and_say_so() -> None:
    trace = trace_of(
        lost(prefill(2.0, "a"), 0.5),
        lost(decode(0.25, "a"), 0.5),
        lost(decode(0.75, "a"), 0.5),
    )

    summary = latency_summary(trace, "a")

    assert summary.tpot_s == 0.5
    assert (summary.disturbed_steps, summary.left_out_steps) == (2, 0)
    assert summary.is_all_disturbed
    assert summary.is_ttft_disturbed
    assert batch_tokens_per_s(trace) == 2.0


def test_a_step_that_is_observed_and_disturbed_is_left_out_once() -> None:
    observed = lost(decode(8.0, "a", observed=True), 0.5)
    trace = trace_of(prefill(2.0, "a"), observed, decode(0.5, "a"))

    summary = latency_summary(trace, "a")

    assert (summary.excluded_steps, summary.disturbed_steps) == (1, 0)
    assert summary.left_out_steps == 1
    assert summary.tpot_s == 0.5


def test_a_disturbed_prefill_of_an_earlier_request_is_in_the_ttft_of_a_later_one() -> None:
    trace = trace_of(
        lost(prefill(2.0, "a"), 0.5), decode(0.5, "a"), prefill(1.0, "b"), requests="ab"
    )
    late = replace(trace.requests[1], arrival_s=2.25)

    assert latency_summary(trace, "b").is_ttft_disturbed
    running = RunningLatency([late], trace.events)
    assert not running.summary("b").is_ttft_disturbed


def test_undisturbed_steps_are_all_of_them_where_every_one_was_disturbed() -> None:
    clean, bad = decode(0.25, "a"), lost(decode(4.0, "a"), 0.5)

    assert list(undisturbed([clean, bad])) == [clean]
    assert list(undisturbed([bad, bad])) == [bad, bad]
    assert list(undisturbed([])) == []


def test_a_run_needs_its_prefill_and_some_decode_steps_undisturbed() -> None:
    clean = [lost(prefill(2.0, "a"), 0.0), lost(decode(1.0, "a"), 0.0)]
    bad = [lost(event, 0.5) for event in clean]

    assert not rests_on_disturbed([*clean, bad[1]])
    assert rests_on_disturbed([bad[0], clean[1]])
    assert rests_on_disturbed([clean[0], bad[1], bad[1]])
    assert not rests_on_disturbed([prefill(2.0, "a"), decode(1.0, "a")])


def samples(busy: float, own: float) -> tuple[TelemetrySample, ...]:
    """Return samples inside the first second of a run."""
    return tuple(
        TelemetrySample(at_s=0.1 * at, cpu_busy_ratio=busy, process_cpu_ratio=own)
        for at in range(1, 5)
    )


def test_a_run_notes_its_disturbed_steps() -> None:
    trace = trace_of(lost(prefill(2.0, "a"), 0.0), lost(decode(1.0, "a"), 0.5))

    assert notes_of(trace) == ("1 of 2 steps disturbed by other programs.",)


def test_full_cores_with_the_engine_at_a_fraction_disturb_a_run_that_counts_no_delays() -> None:
    trace = replace(trace_of(prefill(2.0, "a")), telemetry=samples(1.0, 0.25))

    assert notes_of(trace) == (
        "All cores were busy in 4 of 4 samples and the engine had 25% of them, so other programs "
        "disturbed this run.",
    )


@pytest.mark.parametrize(
    ("busy", "own"), [(1.0, 0.97), (0.6, 0.25)], ids=["its own work", "room left"]
)
def test_cores_that_are_the_engines_or_free_disturb_nothing(busy: float, own: float) -> None:
    trace = replace(trace_of(prefill(2.0, "a")), telemetry=samples(busy, own))

    assert notes_of(trace) == ()


def test_full_cores_say_nothing_where_the_steps_say_that_nothing_was_lost() -> None:
    trace = replace(trace_of(lost(prefill(2.0, "a"), 0.0)), telemetry=samples(1.0, 0.25))

    assert notes_of(trace) == ()
