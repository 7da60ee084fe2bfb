"""Launches, rates and disturbances of runs built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.figures.device import achieved, host_lead, notes_of
from inference.records.costs import Ceilings, Source
from inference.records.model import MatrixRole, WeightMatrix
from inference.records.options import DecodeMode
from inference.records.run import RunTrace
from inference.records.steps import Phase
from inference.records.telemetry import TelemetrySample
from tests.builders import TINY_SHAPE, steps, trace_with


@pytest.mark.parametrize(
    ("host_s", "is_behind"), [(0.0005, False), (0.0095, True)], ids=["ahead", "behind"]
)
def test_a_host_that_needs_the_whole_step_time_is_behind(host_s: float, is_behind: bool) -> None:
    events = [
        replace(event, host_s=host_s) for event in steps(prefill_s=1.0, decode_s=0.01, count=5)
    ]

    lead = host_lead(events)

    assert lead is not None
    assert (lead.steps, lead.host_s, lead.step_time_s) == (5, host_s, 0.01)
    assert lead.is_behind is is_behind


def test_step_times_on_a_cpu_tell_nothing_of_the_host() -> None:
    assert host_lead(steps(prefill_s=1.0, decode_s=0.01, count=5)) is None


def with_matrices(trace: RunTrace) -> RunTrace:
    """Return the trace of a model with one matrix of 1,024 bytes."""
    matrix = WeightMatrix(
        name="w", in_features=16, out_features=16, copies=1, bytes=1024, role=MatrixRole.LINEAR
    )
    shape = replace(TINY_SHAPE, matrices=(matrix,), weight_bytes=1024)
    roofs = Ceilings(flops_per_s=1e6, bytes_per_s=1e6, source=Source.MEASURED, method="")
    return replace(trace, info=replace(trace.info, shape=shape, ceilings=roofs))


def test_achieved_rates_stand_beside_the_busy_times_of_the_same_steps() -> None:
    events = steps(prefill_s=1.0, decode_s=0.01, count=300)
    samples = [
        TelemetrySample(at_s=0.5, gpu_busy_ratio=0.1),
        TelemetrySample(at_s=2.5, gpu_busy_ratio=0.9, memory_controller_busy_ratio=0.5),
    ]

    found = achieved(with_matrices(trace_with(events, samples)))

    assert found is not None
    assert found.bytes_per_s > 1024 / 0.01
    assert found.bytes_ratio == pytest.approx(found.bytes_per_s / 1e6)
    assert (found.busy_ratio, found.controller_ratio) == (0.9, 0.5)


def busy(at_s: float, ratio: float) -> TelemetrySample:
    return TelemetrySample(at_s=at_s, gpu_busy_ratio=ratio, memory_controller_busy_ratio=ratio / 2)


def test_a_busy_time_that_may_be_of_the_prefill_is_left_out() -> None:
    """The driver's reading is of up to a second before it, and all of them were averaged."""
    events = steps(prefill_s=1.0, decode_s=0.01, count=300)
    samples = [busy(1.1, 1.0), busy(1.9, 1.0), busy(2.1, 0.6), busy(3.9, 0.8), busy(4.2, 0.0)]

    found = achieved(with_matrices(trace_with(events, samples)))

    assert found is not None
    assert found.busy_ratio == pytest.approx(0.7)
    assert found.controller_ratio == pytest.approx(0.35)
    assert found.busy_reason == ""


def test_a_busy_time_after_another_prompt_or_a_pause_is_left_out_too() -> None:
    events = list(steps(prefill_s=1.0, decode_s=0.01, count=600))
    events[300] = replace(events[300], phase=Phase.PREFILL)
    events[400:] = [replace(event, started_s=event.started_s + 9) for event in events[400:]]
    samples = [busy(3.0, 0.6), busy(4.5, 1.0), busy(9.0, 0.0), busy(14.5, 1.0), busy(15.5, 0.8)]

    found = achieved(with_matrices(trace_with(events, samples)))

    assert found is not None
    assert found.busy_ratio == pytest.approx(0.7)


def test_a_short_run_says_so_in_place_of_a_busy_time() -> None:
    events = steps(prefill_s=1.0, decode_s=0.01, count=150)

    found = achieved(with_matrices(trace_with(events, [busy(1.2, 0.9), busy(2.4, 0.9)])))

    assert found is not None
    assert (found.busy_ratio, found.controller_ratio) == (None, None)
    assert found.busy_reason == (
        "too short: decode steps followed each other for 1.5 s; the driver's busy time is of up to "
        "1 s before it is read, so 2 s are needed"
    )


def test_a_run_without_a_gpu_has_no_reason_for_its_busy_time() -> None:
    events = steps(prefill_s=1.0, decode_s=0.01, count=150)

    found = achieved(with_matrices(trace_with(events, [TelemetrySample(at_s=1.2)])))

    assert found is not None
    assert (found.busy_ratio, found.busy_reason) == (None, "")


def test_a_shape_without_matrices_has_no_achieved_rates() -> None:
    assert achieved(trace_with(steps(prefill_s=1.0, decode_s=0.01, count=3))) is None


def test_clocks_held_down_are_flagged_and_those_people_chose_are_not() -> None:
    samples = [
        TelemetrySample(at_s=0.1, throttle_reasons=("power limit",)),
        TelemetrySample(at_s=0.2, throttle_reasons=("clocks set by the user",)),
        TelemetrySample(at_s=0.3, throttle_reasons=()),
        TelemetrySample(at_s=0.4),
    ]

    [note] = notes_of(trace_with((), samples))

    assert note == (
        "The GPU's clocks were held down in 1 of 3 samples (power limit), so steps took longer "
        "than they could."
    )


def test_other_programs_on_the_gpu_are_flagged() -> None:
    samples = [
        TelemetrySample(at_s=0.1, other_programs=0),
        TelemetrySample(at_s=0.2, other_programs=2),
        TelemetrySample(at_s=0.3),
    ]

    [note] = notes_of(trace_with((), samples))

    assert note.startswith("Up to 2 other programs had the GPU open in 1 of 2 readings")


def test_a_decode_mode_that_could_not_be_used_is_noted_with_its_reason() -> None:
    trace = trace_with(())
    trace = replace(trace, info=replace(trace.info, decode_note="this run is on the CPU"))

    assert notes_of(trace) == ("Decode steps were eager, not as asked: this run is on the CPU.",)


def test_steps_that_left_the_graph_are_counted() -> None:
    events = [
        replace(event, decode=DecodeMode.EAGER if event.index == 2 else DecodeMode.GRAPH)
        for event in steps(prefill_s=1.0, decode_s=0.01, count=5)
    ]
    trace = trace_with(events)
    trace = replace(trace, info=replace(trace.info, decode=DecodeMode.GRAPH))

    [note] = notes_of(trace)

    assert note.startswith("1 decode step ran eagerly, not as graph")


def test_an_undisturbed_run_has_no_notes() -> None:
    assert notes_of(trace_with(steps(prefill_s=1.0, decode_s=0.01, count=3))) == ()
