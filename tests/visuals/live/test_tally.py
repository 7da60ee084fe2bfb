"""A tally carried from frame to frame gives the frames that are counted anew."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from inference.records.options import BatchPlan, Policy
from inference.records.run import RunTrace
from tests.visuals.batches import batch_trace
from tests.visuals.counted import counted_trace
from tests.visuals.traces import DONE, RUNNING
from visuals.live.frames import frame
from visuals.live.tally import Tally

LENGTHS = ((6, 2, 4, 9, 3), (3, 7, 2, 12, 5))
BATCHES = [
    batch_trace(BatchPlan(), *LENGTHS),
    batch_trace(BatchPlan(slots=2), *LENGTHS, gap_s=0.7),
    batch_trace(BatchPlan(policy=Policy.CONTINUOUS, slots=3), *LENGTHS, gap_s=0.7, chunk_tokens=2),
    counted_trace(steps=40),
]
NAMES = ["static", "two at a time", "continuous in chunks", "one request"]


def _upto(trace: RunTrace, steps: int) -> RunTrace:
    return replace(trace, events=trace.events[:steps])


@pytest.mark.parametrize("trace", BATCHES, ids=NAMES)
def test_frames_with_a_tally_are_those_without(trace: RunTrace) -> None:
    random, tally, cursor, steps = Random(0), Tally(), 0, 0
    while steps < len(trace.events):
        steps = min(steps + random.choice((0, 1, 1, 3)), len(trace.events))
        growing = _upto(trace, steps)

        carried = frame(growing, RUNNING, cursor, tally)

        assert carried == frame(growing, RUNNING, cursor)
        cursor = int(str(carried["to"]))


def test_a_tally_asked_for_fewer_steps_or_another_run_begins_anew() -> None:
    tally = Tally()
    first, other = BATCHES[0], replace(BATCHES[1], info=replace(BATCHES[1].info, run_id="other"))
    for trace, steps in ((first, 9), (first, 4), (other, 6), (first, 5)):
        shown = frame(_upto(trace, steps), DONE, 0, tally)

        assert shown == frame(_upto(trace, steps), DONE, 0)


def test_a_tally_of_a_run_that_was_made_again_under_the_same_id_begins_anew() -> None:
    tally = Tally()
    frame(BATCHES[0], DONE, 0, tally)

    again = batch_trace(BatchPlan(), (2, 2, 2), (3, 3, 9))

    assert frame(again, DONE, 0, tally) == frame(again, DONE, 0)
