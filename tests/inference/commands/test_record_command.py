"""`python -m inference record`: what is refused, and what it takes a run again for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.figures.disturbance import is_disturbed
from inference.models.loading import load_model
from inference.process import recording
from inference.process.recording import Recorder, disturbance, steps_above_roofs
from inference.records.run import RunTrace
from inference.runs.recordings import FIRST_RUN, recorded_runs
from tests.builders import order


@pytest.fixture
def quiet() -> RunTrace:
    [trace] = recorded_runs(FIRST_RUN)
    events = tuple(replace(event, run_delay_s=0.0) for event in trace.events)
    return replace(trace, events=events)


def test_no_try_at_all_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--tries", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err


def test_a_recording_that_there_is_none_of_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["record", "--only", "long-prompt", "--only", "nonsense"]) == 2

    said = capsys.readouterr().err
    assert "there is no recording 'nonsense'" in said
    assert "batch-of-eight" in said


def test_a_quiet_run_needs_no_excuse(quiet: RunTrace) -> None:
    assert not any(map(is_disturbed, quiet.events))
    assert disturbance(quiet) == 0


def test_a_step_above_the_roofs_or_one_that_was_disturbed_counts_against_a_run(
    quiet: RunTrace,
) -> None:
    fast = replace(quiet.events[5], duration_s=1e-4, run_delay_s=0.0)
    lost = replace(quiet.events[6], run_delay_s=quiet.events[6].duration_s)
    events = (*quiet.events[:5], fast, lost, *quiet.events[7:])
    trace = replace(quiet, events=events)

    assert steps_above_roofs(trace) == (5,)
    assert disturbance(trace) == 3  # the note that a step was disturbed is a word of excuse too


def test_a_disturbed_run_is_made_again_until_a_quiet_one_comes(
    quiet: RunTrace, tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = replace(
        quiet, events=tuple(replace(event, run_delay_s=event.duration_s) for event in quiet.events)
    )
    worse = replace(bad, events=bad.events * 2)
    made = iter([worse, bad, quiet, worse])
    said: list[str] = []
    recorder = Recorder(
        load_model(str(tiny_model_folder), on_stage=lambda _stage: None), said.append, tries=4
    )
    monkeypatch.setattr(recording.Recorder, "_run", lambda _self, _order, _samplings: next(made))

    kept = recorder._quiet_run(order("a"))

    assert kept == quiet
    assert next(made) == worse
    assert said[-1].startswith(f"kept, {len(quiet.events)} steps; ")
    assert said[-1].endswith("notes: 0")
