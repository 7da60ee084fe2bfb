"""What the command line says beside a request's figures."""

from __future__ import annotations

from dataclasses import replace

from inference.commands.run import reading_aids
from inference.figures.latency import latency_summary
from inference.records.steps import StepEvent
from tests.inference.figures.scripted_steps import decode, prefill, trace_of


def half_lost(event: StepEvent) -> StepEvent:
    """Return the step with half of its time lost to other programs."""
    return replace(event, run_delay_s=event.duration_s / 2)


def test_quiet_figures_need_no_words() -> None:
    quiet = trace_of(prefill(2.0, "a"), decode(1.0, "a"))

    assert reading_aids(latency_summary(quiet, "a")) == ""


def test_steps_left_out_are_counted() -> None:
    trace = trace_of(prefill(2.0, "a", cold=True), half_lost(decode(4.0, "a")), decode(1.0, "a"))

    assert reading_aids(latency_summary(trace, "a")) == (
        " (cold, TPOT without 1 observed or disturbed step)"
    )


def test_figures_that_cannot_leave_disturbed_steps_out_say_so() -> None:
    trace = trace_of(half_lost(prefill(2.0, "a")), half_lost(decode(4.0, "a")))

    assert reading_aids(latency_summary(trace, "a")) == (
        " (TTFT disturbed, every step of TPOT disturbed)"
    )
