"""Energy of the phases of runs built by hand, from scripted samples of the counter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.energy import energy_by_phase
from inference.records.steps import Phase
from inference.records.telemetry import TelemetrySample
from tests.builders import steps, trace_with


def counter(seconds: float, *, prefill_s: float, interval_s: float = 0.1) -> list[TelemetrySample]:
    """Return samples of a GPU that takes 200 W in prefill and 50 W afterwards, from the start."""
    samples: list[TelemetrySample] = []
    for number in range(round(seconds / interval_s) + 1):
        at_s = number * interval_s
        energy_j = 200 * min(at_s, prefill_s) + 50 * max(0.0, at_s - prefill_s)
        samples.append(TelemetrySample(at_s=at_s, energy_j=1000 + energy_j))
    return samples


def test_energy_of_a_token_is_the_counters_difference_over_the_phases_tokens() -> None:
    events = steps(prefill_s=2.0, decode_s=0.05, count=100)

    prefill, decode = energy_by_phase(trace_with(events, counter(7.0, prefill_s=2.0)))

    assert (prefill.phase, decode.phase) == (Phase.PREFILL, Phase.DECODE)
    assert prefill.energy_j == pytest.approx(400)
    assert prefill.joules_per_token == pytest.approx(50)
    assert decode.energy_j == pytest.approx(250)
    assert decode.joules_per_token == pytest.approx(2.5)


def test_the_counters_own_interval_bounds_what_is_known() -> None:
    events = steps(prefill_s=2.0, decode_s=0.05, count=100)

    prefill, decode = energy_by_phase(trace_with(events, counter(7.0, prefill_s=2.0)))

    assert prefill.interval_s == pytest.approx(0.1)
    assert prefill.uncertain_ratio == pytest.approx(0.1)
    assert decode.uncertain_ratio == pytest.approx(0.04)


def test_a_phase_shorter_than_the_counter_can_tell_has_no_energy_and_a_reason() -> None:
    events = steps(prefill_s=0.2, decode_s=0.05, count=100)

    prefill, decode = energy_by_phase(trace_with(events, counter(5.2, prefill_s=0.2)))

    assert prefill.energy_j is None
    assert prefill.joules_per_token is None
    assert prefill.reason == (
        "too short: it took 0.2 s; the counter is updated every 0.1 s, so 1 s are needed"
    )
    assert decode.energy_j is not None


def test_a_counter_that_moves_seldom_counts_by_its_moves_and_not_by_the_samples() -> None:
    events = steps(prefill_s=2.0, decode_s=0.05, count=100)
    coarse = [
        replace(one, energy_j=1000 + 50.0 * int(one.at_s)) for one in counter(7.0, prefill_s=2.0)
    ]

    prefill, _ = energy_by_phase(trace_with(events, coarse))

    assert prefill.interval_s == pytest.approx(1.0)
    assert prefill.energy_j is None


def test_steps_far_apart_are_spans_of_their_own() -> None:
    events = tuple(
        replace(event, started_s=event.index * 2.0, duration_s=0.1)
        for event in steps(prefill_s=0.1, decode_s=0.1, count=4)
    )

    _, decode = energy_by_phase(trace_with(events, counter(9.0, prefill_s=0.1)))

    assert decode.seconds == pytest.approx(0.4)
    assert decode.energy_j is None


def test_without_a_counter_no_energy_is_made_up() -> None:
    both = energy_by_phase(trace_with(steps(prefill_s=2.0, decode_s=0.05, count=10)))

    assert [one.energy_j for one in both] == [None, None]
    assert {one.reason for one in both} == {
        "the GPU's energy counter was not read, or did not move"
    }
