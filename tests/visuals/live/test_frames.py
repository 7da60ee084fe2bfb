"""Frames: small at any length, and together the whole run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from inference.records.options import BatchPlan, Policy
from inference.records.run import RunTrace
from inference.records.status import RunState, RunStatus
from inference.records.steps import Candidate, Finish
from tests.visuals.batches import batch_trace
from tests.visuals.traces import DONE, RUNNING, SPECIAL, empty_trace, trace_of
from visuals.charts.tokens import hex_bytes
from visuals.charts.utilization import missing
from visuals.live.frames import MAX_FRAME_BYTES, finish_words, frame
from visuals.live.tally import Tally

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u6f22\u5b57"
BYTES_OF_FAMILY = [FAMILY.encode()[place : place + 1] for place in range(len(FAMILY.encode()))]


def _frames(trace: RunTrace, status: RunStatus = DONE) -> list[dict[str, Any]]:
    """Return the frames of a viewer who attaches when the run stands like this."""
    frames: list[dict[str, Any]] = []
    cursor, tally = 0, Tally()
    while True:
        drawn = frame(trace, status, cursor, tally)
        frames.append(json.loads(json.dumps(drawn, allow_nan=False)))
        cursor = frames[-1]["to"]
        if cursor == frames[-1]["total"]:
            return frames


def _text(frames: list[dict[str, Any]]) -> str:
    """Return the text that a viewer has after these frames."""
    added = "".join(shown["text"][0]["add"] for shown in frames)
    return added + frames[-1]["text"][0]["end"]


def _rows(frames: list[dict[str, Any]], name: str) -> list[list[Any]]:
    """Return all rows that were appended under a name."""
    return [row for shown in frames for row in shown["rows"].get(name, {"rows": []})["rows"]]


@pytest.fixture(scope="module")
def long_run() -> RunTrace:
    """A prompt of 8,192 tokens and 5,000 steps."""
    words = [f" word{number}".encode() for number in range(3000)]
    return trace_of([words[index % 3000] for index in range(8192)], (words * 2)[:5000])


def test_no_frame_of_a_long_run_is_larger_than_allowed(long_run: RunTrace) -> None:
    frames = _frames(long_run)

    assert max(len(json.dumps(shown)) for shown in frames) <= MAX_FRAME_BYTES
    assert len(frames) < 160


@pytest.mark.parametrize("policy", list(Policy))
def test_no_frame_of_32_long_rows_is_larger_than_allowed(policy: Policy) -> None:
    plan = BatchPlan(policy=policy, slots=32)
    likely = tuple(Candidate(token_id=1, logprob=-0.5) for _ in range(5))
    lengths = [256 - number for number in range(32)]
    run = batch_trace(plan, lengths, [40 + number % 7 for number in range(32)], gap_s=0.2)
    events = tuple(
        replace(event, rows=tuple(replace(row, candidates=likely) for row in event.rows))
        for event in run.events
    )

    frames = _frames(replace(run, events=events))

    assert max(len(json.dumps(shown)) for shown in frames) <= MAX_FRAME_BYTES
    outputs = [item for shown in frames for item in shown.get("outputs", [])]
    assert len(outputs) == sum(len(event.rows) for event in events)


def test_all_frames_together_are_the_whole_run(long_run: RunTrace) -> None:
    frames = _frames(long_run)

    request = long_run.requests[0]
    assert [item[1] for shown in frames for item in shown["prompt"]] == list(request.prompt_ids)
    outputs = [item for shown in frames for item in shown.get("outputs", [])]
    assert [item[2] for item in outputs] == [e.rows[0].token_id for e in long_run.events]
    steps = [step for shown in frames for step in shown.get("mask", [])]
    assert [step[2] for step in steps] == [e.context_tokens for e in long_run.events]
    assert [row[0] for row in _rows(frames, "decode_step_times")] == list(range(1, 5000))
    assert [row[0] for row in _rows(frames, "cache_growth")] == list(range(5000))


def test_a_frame_at_any_cursor_goes_on_where_the_viewer_was(long_run: RunTrace) -> None:
    shown = frame(long_run, DONE, 8192 + 4990)

    assert (shown["from"], shown["to"], shown["total"]) == (13182, 13192, 13192)
    assert shown["prompt"] == []
    assert "model" not in shown


def test_a_growing_run_reads_as_the_finished_one() -> None:
    whole = trace_of([b"a", b"b"], [*BYTES_OF_FAMILY, SPECIAL])
    frames: list[dict[str, Any]] = []
    cursor = 0
    for steps in range(len(whole.events) + 1):
        growing = replace(whole, events=whole.events[:steps])
        frames.append(frame(growing, RUNNING, cursor))
        cursor = int(frames[-1]["to"])

    assert _text(frames) == FAMILY
    assert [part["add"] for part in (shown["text"][0] for shown in frames[1:5])] == [
        "",
        "",
        "",
        "\U0001f469",
    ]
    assert frames[3]["text"][0]["held"] == 3


def test_tokens_that_are_parts_of_a_character_are_shown_as_fragments() -> None:
    [shown] = _frames(trace_of([b"a"], BYTES_OF_FAMILY[:4]))

    assert [(item[3], item[4], item[5]) for item in shown["outputs"]] == [
        (hex_bytes(raw), raw.hex(), "fragment") for raw in BYTES_OF_FAMILY[:4]
    ]


def test_a_character_that_never_completes_is_replaced_when_the_run_is_over() -> None:
    run = trace_of([b"a"], [b"b", b"\xf0\x9f"])

    assert _text(_frames(run, RUNNING)) == "b"
    assert _text(_frames(run, DONE)) == "b\ufffd"


def test_html_in_a_prompt_stays_text() -> None:
    [shown] = _frames(trace_of([b"<script>alert(1)</script>"[:20]], [b"<b>"]))

    assert shown["prompt"][0][3] == "<script>alert(1)</sc"
    assert shown["text"][0]["add"] == "<b>"


def test_an_output_token_brings_its_probability_and_alternatives() -> None:
    [shown] = _frames(trace_of([b"a"], [b"b"]))

    [[row, step, token_id, hexadecimal, text, kind, p, finish, candidates]] = shown["outputs"]
    assert (row, step, token_id, hexadecimal, text, kind) == (0, 0, 1, "62", "b", "normal")
    assert (p, finish) == (0.6065, None)
    assert candidates[0] == [1, "b", 0.6065]


def test_selected_is_not_stored() -> None:
    run = trace_of([b"a"] * 41, [b"b", b"c"])

    first = frame(replace(run, events=run.events[:1]), RUNNING, 0)["step"]
    second = frame(run, RUNNING, 42)["step"]

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["phase"], first["T"], first["L"]) == ("prefill", 41, 41)
    assert (first["known"], first["stored"]) == (42, 41)
    assert (second["phase"], second["T"], second["L"]) == ("decode", 1, 42)
    assert (second["decode"], second["decode_most"]) == (1, 1)


def test_a_batch_sums_t_and_l_over_the_rows_fed_and_stored_over_all_rows() -> None:
    """T was a sum and L the longest row, so that L could be less than T, which it includes."""
    run = batch_trace(BatchPlan(policy=Policy.CONTINUOUS, slots=2))
    prompts = sum(len(one.prompt_ids) for one in run.requests)
    heads: list[list[int]] = []

    for at in range(3):
        step = frame(replace(run, events=run.events[: at + 1]), RUNNING, prompts + at)["step"]
        assert isinstance(step, dict)
        heads.append([step[key] for key in ("T", "L", "known", "stored")])

    # The first row waits while the second one's prompt is fed; then both are fed a token.
    assert heads == [[6, 6, 7, 6], [2, 2, 10, 8], [2, 10, 12, 10]]


def test_a_run_that_waits_has_its_place_and_nothing_else() -> None:
    status = RunStatus(state=RunState.QUEUED, message="Another run goes on.", queue_position=2)

    shown = frame(None, status, 17)

    assert shown["run"] == {
        "state": "queued",
        "final": False,
        "message": "Another run goes on.",
        "stage": "",
        "stage_ratio": None,
        "queue_position": 2,
        "held": False,
    }
    assert (shown["from"], shown["to"], shown["total"]) == (0, 0, 0)


def test_every_frame_says_what_the_check_of_its_model_found_to_differ() -> None:
    trace = empty_trace()
    marked = replace(trace, info=replace(trace.info, check_warning="It differs."))

    runs: list[Any] = [frame(one, RUNNING, 0)["run"] for one in (trace, marked)]

    assert [run["warning"] for run in runs] == ["", "It differs."]


def test_every_frame_says_what_is_to_be_known_of_the_prompts_text() -> None:
    trace = empty_trace()
    noted = replace(trace.requests[0], text_note="It holds a control token.")
    marked = replace(trace, requests=(noted, replace(noted, request_id="r1")))

    shown: Any = frame(marked, RUNNING, 0)["run"]

    assert shown["warning"] == "It holds a control token."


def test_a_run_without_a_step_shows_its_prompt_and_model() -> None:
    shown = frame(empty_trace(), RUNNING, 0)

    assert shown["step"] is None
    assert shown["to"] == shown["total"] == 2
    assert shown["unavailable"] == [
        "This machine has no NVIDIA driver, so not available: GPU busy."
    ]


LONG = trace_of([b"a", b"b"], [b"c", b"d", b"e"])


def test_why_a_reading_is_missing_reaches_a_viewer_who_followed_from_the_start() -> None:
    """The reasons are known when the run ends; a frame that began at 0 came long before."""
    total = len(LONG.requests[0].prompt_ids) + len(LONG.events)

    assert frame(LONG, RUNNING, total)["unavailable"] is None
    assert frame(LONG, DONE, total)["unavailable"] == missing(LONG)


def test_a_finished_run_says_why_it_finished() -> None:
    last = LONG.events[-1]
    row = replace(last.rows[0], finish=Finish.CONTEXT)
    ended = replace(LONG, events=(*LONG.events[:-1], replace(last, rows=(row,))))

    assert finish_words(ended) == "context window full"
    assert finish_words(replace(ended, state=RunState.STOPPED)) == ""


def test_nothing_new_is_a_small_frame(long_run: RunTrace) -> None:
    shown = frame(long_run, DONE, 10**9)

    assert shown["from"] == shown["to"] == 13192
    assert len(json.dumps(shown)) < 12_000
    assert "figures" not in shown


def test_every_reading_reaches_a_viewer_who_follows() -> None:
    whole = trace_of([b"a"], [b"b", b"c"] * 20)
    numbers: set[int] = set()
    cursor = 0
    for steps in range(1, 41):
        growing = replace(whole, events=whole.events[:steps], telemetry=whole.telemetry[:steps])
        shown: dict[str, Any] = frame(growing, RUNNING, cursor)
        cursor = shown["to"]
        numbers |= {row[0] for row in shown["rows"]["utilization"]["rows"]}

    assert numbers == set(range(40))
