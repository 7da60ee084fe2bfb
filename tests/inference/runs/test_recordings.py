"""What comes with the program: it can be read, and needs no word of excuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference.process.recording import disturbance
from inference.records.errors import RunFileError
from inference.records.status import RunState
from inference.records.steps import Part
from inference.runs.recordings import (
    BATCH,
    COMPARISON,
    FIRST_RUN,
    FOLDER,
    MEASUREMENTS_FILE,
    read_measurements,
    recorded_measurements,
    recorded_runs,
    recording_names,
    write_measurements,
    write_runs,
)

MOST_BYTES = 1_500_000
QUIET = (FIRST_RUN, COMPARISON, BATCH)  # of the others, which say it, steps may be disturbed


def test_every_recording_is_there_and_all_of_them_are_small() -> None:
    assert set(recording_names()) >= {FIRST_RUN, COMPARISON, BATCH}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST_BYTES


@pytest.mark.parametrize("name", recording_names())
def test_recorded_runs_are_whole_and_have_roofs(name: str) -> None:
    for trace in recorded_runs(name):
        assert trace.state is RunState.DONE
        assert trace.info.ceilings is not None
        assert trace.info.started_at.tzinfo is not None
        assert not any(event.cold for event in trace.events)
        assert disturbance(trace) == 0 or name not in QUIET


def test_the_comparison_is_of_three_prompts_and_the_batch_of_one_run() -> None:
    prompts = [trace.requests[0].prompt_text for trace in recorded_runs(COMPARISON)]

    assert len(set(prompts)) == 3
    [batch] = recorded_runs(BATCH)
    assert len(batch.requests) == 4


def test_the_first_run_has_points_for_every_tab_of_the_roofline_and_weights_of_layers() -> None:
    [trace] = recorded_runs(FIRST_RUN)

    timed = {part.part for event in trace.events for part in event.parts}
    assert timed == {Part.LINEAR, Part.ATTENTION}
    assert len({packed.choice.layer for packed in trace.attention}) > 1
    assert not trace.events[0].observed


def test_measurements_are_of_the_machine_of_the_runs() -> None:
    measured = recorded_measurements()
    [trace] = recorded_runs(FIRST_RUN)

    assert measured is not None
    assert trace.info.ceilings == measured.ceilings.ceilings
    assert measured.batches.is_whole
    assert measured.batches.shape == trace.info.shape
    assert measured.tokens.device == measured.ceilings.device == trace.info.device


def test_measurements_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    measured = recorded_measurements()
    assert measured is not None

    write_measurements(measured, tmp_path)

    assert read_measurements(tmp_path / MEASUREMENTS_FILE) == measured


def test_damaged_measurements_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / MEASUREMENTS_FILE
    path.write_text("{}", encoding="utf-8")

    with pytest.raises(RunFileError, match="no measurements of this program"):
        read_measurements(path)


def test_runs_are_written_under_their_name(tmp_path: Path) -> None:
    [trace] = recorded_runs(FIRST_RUN)

    write_runs((trace, replace(trace, message="second")), "two", tmp_path)

    assert (tmp_path / "two.json.gz").exists()
