"""Tables and timelines of runs: every value kept, sums that agree, no formula for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from math import fsum

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference.figures.latency import latency_summary
from inference.records.run import RunTrace
from inference.runs.comparisons import figures_of, subjects_of
from inference.runs.exports import (
    MOST_CELL_CHARACTERS,
    STEP_SCHEMA,
    csv_file,
    figures_csv,
    safe_text,
    step_rows,
    steps_csv,
    steps_parquet,
    to_csv,
)
from inference.runs.perfetto import perfetto_json
from inference.runs.run_file import to_json
from tests.builders import run_from_json, run_info
from tests.visuals.traces import trace_of

TRACE = trace_of([b"a", b"b"], [b"x", b"=1+1", b"-", b"\xf0"], step_time_s=0.07)


def sheet(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def two_rows() -> RunTrace:
    """Return a batch in which the second request waits for the first step and ends one later."""
    first = TRACE.requests[0]
    second = replace(first, request_id="r1")
    events = tuple(
        replace(event, rows=(*event.rows, replace(event.rows[0], request_id="r1", slot=1)))
        if event.index > 0
        else event
        for event in TRACE.events
    )
    return replace(TRACE, requests=(first, second), events=events)


def test_csv_has_a_row_for_each_step_with_the_runs_own_values() -> None:
    rows = sheet(steps_csv([TRACE]))

    assert [int(row["step"]) for row in rows] == [0, 1, 2, 3]
    assert [float(row["step_time_s"]) for row in rows] == [
        event.duration_s for event in TRACE.events
    ]
    assert [int(row["kv_used_bytes"]) for row in rows] == [
        event.cache.used_bytes for event in TRACE.events
    ]
    assert rows[0]["phase"] == "prefill"
    assert rows[0]["finish"] == ""
    assert (rows[0]["cold"], rows[3]["cold"]) == ("true", "false")


@pytest.mark.parametrize("trace", [TRACE, two_rows()], ids=["alone", "a batch with a wait"])
def test_the_step_times_of_a_request_add_up_to_its_time_on_the_page(trace: RunTrace) -> None:
    rows = sheet(steps_csv([trace]))

    assert trace.requests
    for request in trace.requests:
        own = [row for row in rows if row["request_id"] == request.request_id]
        total_s = fsum(float(row["step_time_s"]) + float(row["wait_s"]) for row in own)
        assert total_s == pytest.approx(latency_summary(trace, request.request_id).e2e_s)


def test_a_run_file_read_again_exports_the_same() -> None:
    again = run_from_json(to_json(TRACE))

    assert steps_csv([again]) == steps_csv([TRACE])
    assert steps_parquet([again]) == steps_parquet([TRACE])
    assert perfetto_json(again) == perfetto_json(TRACE)


def test_parquet_holds_the_same_rows_with_their_types() -> None:
    table = pq.read_table(pa.BufferReader(steps_parquet([TRACE])))

    assert table.schema.equals(STEP_SCHEMA)
    assert table.to_pylist() == step_rows([TRACE])
    assert table.column("token_text").to_pylist()[1] == "=1+1"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_is_a_formula(start: str) -> None:
    text = f'{start}cmd|"/C calc"!A0'

    [row] = csv.DictReader(
        io.StringIO(to_csv([{"text": text, "n": -1}], ["text", "n"]), newline="")
    )

    assert row == {"text": f"'{text}", "n": "-1"}


def test_a_token_that_looks_like_a_formula_is_text_in_the_csv() -> None:
    assert [row["token_text"] for row in sheet(steps_csv([TRACE]))][1:3] == ["'=1+1", "'-"]


def test_figures_of_a_comparison_are_those_of_the_page() -> None:
    other = replace(trace_of([b"c"], [b"x", b"y"], step_time_s=0.09), info=run_info("other"))
    figures = [figures_of(one) for one in subjects_of([TRACE, other])]

    rows = sheet(figures_csv(figures))

    assert [row["label"] for row in rows] == ["A", "B"]
    assert list(rows[0])[:14] == [
        "label", "title", "prompt", "model", "dtype", "device", "attention", "cache", "decode",
        "kernels", "prompt_fed", "next_token", "maximum_new_tokens", "run",
    ]  # fmt: skip
    assert [row["prompt"] for row in rows] == ["ab", "c"]
    assert [float(row["tpot_s"]) for row in rows] == [one.tpot_s.middle for one in figures]
    assert [int(row["kv_bytes"]) for row in rows] == [one.kv_bytes for one in figures]
    assert [row["disturbed_steps"] for row in rows] == ["0", "0"]
    assert figures_csv([]) == "label\r\n"


def test_an_empty_run_exports_a_header_only() -> None:
    empty = trace_of([b"a"], [])

    assert steps_csv([empty]).strip() == ",".join(STEP_SCHEMA.names)
    assert pq.read_table(pa.BufferReader(steps_parquet([empty]))).num_rows == 0
    assert json.loads(perfetto_json(empty))["traceEvents"][0]["ph"] == "M"


def test_exports_say_which_steps_were_disturbed_and_leave_unknown_ones_empty() -> None:
    lost_s = (None, 0.0, 0.035, 0.001)
    pairs = zip(TRACE.events, lost_s, strict=True)
    events = tuple(replace(event, run_delay_s=delay) for event, delay in pairs)
    trace = replace(TRACE, events=events)

    rows = sheet(steps_csv([trace]))
    spans = [one["args"] for one in json.loads(perfetto_json(trace))["traceEvents"] if "dur" in one]

    assert [row["run_delay_s"] for row in rows] == ["", "0.0", "0.035", "0.001"]
    assert [row["disturbed"] for row in rows] == ["", "false", "true", "false"]
    assert [span["run_delay_s"] for span in spans if "run_delay_s" in span] == [0.0, 0.035, 0.001]


def test_the_timeline_has_each_step_on_its_time_and_telemetry_as_counters() -> None:
    file = json.loads(perfetto_json(TRACE))
    spans = [event for event in file["traceEvents"] if event["ph"] == "X" and event["tid"] == 1]
    counters = {event["name"] for event in file["traceEvents"] if event["ph"] == "C"}

    assert [span["ts"] for span in spans] == [event.started_s * 1e6 for event in TRACE.events]
    assert [span["dur"] for span in spans] == pytest.approx([7e4] * 4)
    assert [span["name"] for span in spans] == ["prefill", "decode", "decode", "decode"]
    assert counters == {
        "kv_used_bytes",
        "cpu_busy_ratio",
        "process_cpu_ratio",
        "memory_used_bytes",
        "memory_total_bytes",
    }
    assert file["displayTimeUnit"] == "ms"


def test_a_csv_file_begins_with_a_byte_order_mark() -> None:
    content = csv_file(steps_csv([TRACE]))

    assert content.startswith(b"\xef\xbb\xbfrun_id,")
    assert content.decode("utf-8-sig") == steps_csv([TRACE])


@pytest.mark.parametrize("text", ["x" * 40_000, "=" + "é" * 40_000], ids=["text", "formula"])
def test_a_text_too_long_for_a_cell_is_cut_with_a_mark(text: str) -> None:
    [row] = sheet(to_csv([{"text": text}], ["text"]))

    assert len(row["text"]) == MOST_CELL_CHARACTERS
    assert row["text"].endswith("characters, the run file has all of them]")
    assert f"{len(safe_text(text)):,} characters" in row["text"]


def test_a_text_that_just_fits_into_a_cell_is_whole() -> None:
    text = "x" * MOST_CELL_CHARACTERS

    assert sheet(to_csv([{"text": text}], ["text"])) == [{"text": text}]


def test_a_run_of_one_token_is_exported_with_gaps_and_no_nan() -> None:
    one = replace(TRACE, events=TRACE.events[:1])

    [row] = sheet(steps_csv([one]))
    [figures] = sheet(figures_csv([figures_of(subject) for subject in subjects_of([one, one])][:1]))

    assert row["step"] == "0"
    assert figures["tpot_s"] == figures["itl_p50_s"] == figures["tokens_per_s"] == ""
    assert "nan" not in steps_csv([one]).lower()
    assert len(steps_parquet([one])) > 0
