"""The headline figures."""

from __future__ import annotations

from dataclasses import replace

from inference.records.costs import Source
from inference.records.steps import StepEvent
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts.figures import headline
from visuals.charts.units import DASH

RUN = trace_of([b"a"], [b"b", b"c", b"d"], step_time_s=0.05)


def test_every_figure_has_a_unit_a_source_and_the_steps_it_rests_on() -> None:
    figures = {figure.key: figure for figure in headline(RUN, "r0")}

    assert [(key, figure.value, figure.unit, figure.steps) for key, figure in figures.items()] == [
        ("ttft", "50.0", "ms", 1),
        ("itl_p50", "50.0", "ms", 2),
        ("itl_p95", "50.0", "ms", 2),
        ("tpot", "50.0", "ms", 2),
        ("decode_rate", "20.0", "tok/s", 2),
        ("e2e_rate", "20.0", "tok/s", 3),
    ]
    assert {figure.source for figure in figures.values()} == {Source.MEASURED}
    assert figures["ttft"].note == "cold"
    assert all(figure.explanation for figure in figures.values())


def test_a_run_without_a_step_has_dashes_that_rest_on_nothing() -> None:
    figures = headline(empty_trace(), "r0")

    assert {(figure.value, figure.steps, figure.note) for figure in figures} == {(DASH, 0, "")}


def test_figures_say_how_many_observed_steps_they_leave_out() -> None:
    events = (*RUN.events[:2], replace(RUN.events[2], observed=True))
    figures = {figure.key: figure for figure in headline(replace(RUN, events=events), "r0")}

    assert figures["tpot"].note == "cold, without 1 observed"
    assert figures["tpot"].steps == 1


def disturbed(event: StepEvent) -> StepEvent:
    """Return the step with half of its time lost to other programs."""
    return replace(event, run_delay_s=event.duration_s / 2)


def test_figures_say_how_many_disturbed_steps_they_leave_out() -> None:
    slow = disturbed(replace(RUN.events[2], duration_s=0.5))
    figures = {f.key: f for f in headline(replace(RUN, events=(*RUN.events[:2], slow)), "r0")}

    assert (figures["tpot"].value, figures["tpot"].steps) == ("50.0", 1)
    assert figures["tpot"].note == "cold, without 1 disturbed"
    assert "1 step from which other programs took time" in figures["tpot"].explanation
    assert figures["ttft"].note == "cold"
    assert figures["e2e_rate"].note == "cold, disturbed"


def test_where_all_steps_are_disturbed_every_figure_says_so() -> None:
    events = tuple(disturbed(event) for event in RUN.events)
    figures = {figure.key: figure for figure in headline(replace(RUN, events=events), "r0")}

    assert figures["ttft"].note == "cold, disturbed"
    assert figures["tpot"].note == "cold, all disturbed"
    assert (figures["tpot"].value, figures["tpot"].steps) == ("50.0", 2)


def test_observed_and_disturbed_steps_are_counted_together_in_the_room_of_a_card() -> None:
    more = trace_of([b"a"], [b"b", b"c", b"d", b"e"], step_time_s=0.05)
    events = (*more.events[:2], replace(more.events[2], observed=True), disturbed(more.events[3]))
    tpot = headline(replace(more, events=events), "r0")[3]

    assert tpot.note == "cold, without 2 steps"
    assert "1 step in which something was captured" in tpot.explanation


def test_a_prompt_in_chunks_says_how_many_step_times_are_in_the_first_token() -> None:
    first = replace(RUN.events[0], cold=False)
    chunked = replace(RUN, events=(first, first, *RUN.events[2:]))

    ttft = headline(chunked, "r0")[0]

    assert "2 chunks" in ttft.note
    assert ttft.steps == 2
