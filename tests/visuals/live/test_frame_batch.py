"""Frames of runs of several requests: small, and complete for every request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from inference.records.options import BatchPlan, Policy
from inference.records.run import RunTrace
from tests.visuals.batches import batch_trace
from tests.visuals.traces import DONE, trace_of
from visuals.live.frame_batch import first_fed
from visuals.live.frames import MAX_FRAME_BYTES, frame

PLANS = [BatchPlan(), BatchPlan(policy=Policy.CONTINUOUS, slots=8)]
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.policy)


def frames(trace: RunTrace) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    cursor = 0
    while True:
        made.append(json.loads(json.dumps(frame(trace, DONE, cursor), allow_nan=False)))
        cursor = made[-1]["to"]
        if cursor == made[-1]["total"]:
            return made


@every_plan
def test_no_frame_of_32_requests_is_larger_than_allowed(plan: BatchPlan) -> None:
    trace = batch_trace(plan, [40] * 32, [60 + number for number in range(32)])

    assert max(len(json.dumps(one)) for one in frames(trace)) <= MAX_FRAME_BYTES


@every_plan
def test_every_token_of_every_request_is_in_one_frame_and_no_other(plan: BatchPlan) -> None:
    trace = batch_trace(plan, [4] * 9, [number + 1 for number in range(9)])

    outputs = [item[0] for one in frames(trace) for item in one.get("outputs", [])]

    assert [outputs.count(number) for number in range(9)] == [number + 1 for number in range(9)]


@every_plan
def test_the_masks_of_a_batch_hold_every_row_fed_to_every_request(plan: BatchPlan) -> None:
    trace = batch_trace(plan, [4, 3, 2], [3, 4, 2])

    rows = [row for one in frames(trace) for _, step in one.get("masks", []) for row in step]

    fed = [sum(fed for number, fed, _ in rows if number == wanted) for wanted in range(3)]
    assert fed == [4 + 2, 3 + 3, 2 + 1]  # the last token is never fed


@every_plan
def test_the_last_frame_says_where_every_request_stands(plan: BatchPlan) -> None:
    trace = batch_trace(plan, [4, 3, 2], [3, 4, 2])

    last = frames(trace)[-1]

    assert {number: stored for number, _, stored in last["batch"]["step"]["strips"]} == {
        0: 6,
        1: 6,
        2: 3,
    }
    assert len(last["batch"]["latency"]) == 3
    assert last["rows"]["slot_spans"]["mode"] == "replace"


def test_the_first_frame_says_how_the_requests_share_the_device() -> None:
    plan = BatchPlan(policy=Policy.CONTINUOUS, slots=2)

    first = frames(batch_trace(plan))[0]

    assert first["model"]["batch"]["policy"] == "continuous"
    assert (first["model"]["batch"]["slots"], first["model"]["batch"]["requests"]) == (2, 3)
    assert first["figures"]
    assert all("request 1" in figure["note"] for figure in first["figures"])


@pytest.mark.parametrize(("gap_s", "slots"), [(0.0, 3), (0.7, None)], ids=["together", "apart"])
def test_slots_of_a_static_batch_are_known_where_all_come_together(
    gap_s: float, slots: int | None
) -> None:
    first = frames(batch_trace(BatchPlan(), gap_s=gap_s))[0]

    assert first["model"]["batch"]["slots"] == slots


@pytest.mark.parametrize(
    ("plan", "gap_s", "chunk", "fed"),
    [
        (BatchPlan(), 0.0, None, [[0, 6], [1, 2], [2, 4]]),
        (BatchPlan(slots=2), 0.0, None, [[0, 6], [1, 2]]),
        (BatchPlan(), 0.5, None, [[0, 6]]),
        (BatchPlan(policy=Policy.CONTINUOUS, slots=2), 0.0, None, [[0, 6]]),
        (BatchPlan(), 0.0, 4, [[0, 4], [1, 0], [2, 2]]),
    ],
    ids=["static", "two slots", "arrivals", "continuous", "chunks"],
)
def test_only_what_the_first_step_feeds_is_said_to_be_fed(
    plan: BatchPlan, gap_s: float, chunk: int | None, fed: list[list[int]]
) -> None:
    """All prompts of a batch were shown as being fed while the first one was."""
    trace = batch_trace(plan, gap_s=gap_s, chunk_tokens=chunk)
    trace = replace(trace, info=replace(trace.info, chunk_tokens=chunk))

    assert first_fed(trace) == fed
    first = {int(row.request_id[1:]): row.query_tokens for row in trace.events[0].rows}
    assert {at: tokens for at, tokens in fed if tokens} == first


def test_a_run_of_one_request_is_no_batch() -> None:
    first = frames(trace_of([b"a"], [b"b", b"c"]))[0]

    assert first["model"]["batch"] is None
    assert "batch" not in first
    assert "slot_spans" not in first["rows"]
