"""Run files with anything wrong in them: refused in a sentence, or drawn like any other run."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs.run_file import read_bytes, to_json
from inference.runs.store_entries import entry_of
from tests.builders import run_info
from tests.faults.fuzzing import check_sentence, damaged, flipped, fuzzed, values
from tests.visuals.traces import DONE, trace_of
from visuals.live.frames import MAX_FRAME_BYTES, frame
from visuals.live.tally import Tally

SOUND = replace(trace_of([b"why", b" so"], [b"be", b"cause", b"."]), info=run_info("run-1"))
TEXT = to_json(SOUND)
TREE = json.loads(TEXT)


def is_refused_or_drawn(content: bytes) -> None:
    """Fail unless a run file is refused in a sentence, or all of it can be shown and kept."""
    try:
        runs = read_bytes(content)
    except RunFileError as error:
        check_sentence(error)
        return
    for run in runs:
        assert drawn(run)
        assert entry_of(run, "key", len(content)).key == "key"
        [again] = read_bytes(to_json(run).encode())
        assert again == run


def drawn(run: RunTrace) -> list[str]:
    """Return the frames of a viewer who attaches to the finished run, as they travel."""
    sent: list[str] = []
    cursor, tally = 0, Tally()
    while True:
        shown = frame(run, DONE, cursor, tally)
        sent.append(json.dumps(shown, allow_nan=False))
        assert len(sent[-1]) <= MAX_FRAME_BYTES
        cursor = int(str(shown["to"]))
        if cursor == shown["total"]:
            return sent


@fuzzed(400)
@given(damaged(TREE))
def test_a_run_file_with_other_values_is_refused_or_drawn(tree: Any) -> None:  # noqa: ANN401  JSON
    is_refused_or_drawn(json.dumps(tree).encode())


@fuzzed(150)
@given(flipped(TEXT.encode()), st.booleans())
def test_a_run_file_with_other_bytes_is_refused_or_drawn(content: bytes, is_packed: bool) -> None:
    is_refused_or_drawn(gzip.compress(content, 1) if is_packed else content)


@fuzzed(100)
@given(flipped(gzip.compress(TEXT.encode(), mtime=0)))
def test_a_damaged_compression_is_refused_or_drawn(content: bytes) -> None:
    is_refused_or_drawn(content)


@fuzzed(100)
@given(st.lists(damaged(TREE) | values(), max_size=3))
def test_a_list_of_runs_with_something_wrong_is_refused_or_drawn(trees: list[Any]) -> None:
    is_refused_or_drawn(json.dumps(trees).encode())


@fuzzed(100)
@given(st.integers(-10, 10_000), st.integers(0, 3))
def test_a_frame_at_any_cursor_is_json_and_goes_on(cursor: int, steps: int) -> None:
    run = replace(SOUND, events=SOUND.events[:steps], outputs=())

    shown = frame(run, DONE, max(0, cursor))

    json.dumps(shown, allow_nan=False)
    assert 0 <= int(str(shown["to"])) <= int(str(shown["total"]))
