"""Run files of engines at an address: there and back, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference.records.arrivals import (
    Channel,
    LoadPlan,
    RemoteRun,
    SaidCandidate,
    SaidToken,
    Spacing,
    Usage,
)
from inference.records.endpoints import Answer, EndpointInfo, EngineKind, Extra, Offer
from inference.records.errors import RunFileError
from inference.remote.chunks import Chunk
from inference.runs import remote_file, run_file
from inference.runs.arrival_exports import (
    ARRIVAL_SCHEMA,
    REQUEST_SCHEMA,
    arrivals_csv,
    arrivals_parquet,
    requests_csv,
    requests_parquet,
)
from tests.inference.remote.requests import recorded

FIRST = Chunk(
    texts=((Channel.ANSWER, "=a\u00e9"),),
    token_ids=(5, 6),
    tokens=(
        SaidToken(
            raw=b"=a",
            token_id=5,
            logprob=-0.5,
            candidates=(SaidCandidate(raw=b"b", logprob=-1.5, token_id=7),),
        ),
        SaidToken(raw=b"\xc3\xa9"),
    ),
)
END = Chunk(finish="stop", usage=Usage(prompt_tokens=4, output_tokens=2))
RUN = RemoteRun(
    run_id="run1",
    endpoint=EndpointInfo(
        address="http://127.0.0.1:8000",
        engine=EngineKind.VLLM,
        version="0.32.0",
        models=(),
        offers=(Offer(extra=Extra.USAGE, answer=Answer.CAME, reason="seen"),),
    ),
    started_at=datetime(2026, 12, 1, tzinfo=UTC),
    versions=(("httpcore2", "2"),),
    requests=(recorded((1.0, [Chunk(), FIRST]), (2.0, [END])),),
)


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_a_run_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    remote_file.write(RUN, tmp_path / name)

    assert remote_file.read(tmp_path / name) == (RUN,)


def test_each_reader_names_the_files_of_the_other(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.json"
    theirs.write_text('{"schema_version": 1, "info": {}}')
    ours = tmp_path / "ours.json"
    remote_file.write(RUN, ours)

    with pytest.raises(RunFileError, match="arrivals FILE"):
        run_file.read(ours)
    with pytest.raises(RunFileError, match="own engine"):
        remote_file.read(theirs)


def test_a_source_that_nobody_knows_is_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"schema_version": 1, "source": "the moon"}')

    with pytest.raises(RunFileError, match="no run of this program"):
        run_file.read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 3}, "update the program"),
        ({"requests": []}, "requests: none"),
        ({"run_id": 3}, "run_id"),
        ({"arrivals.0.at_s": 5.0}, "do not follow one another"),
        ({"arrivals.0.at_s": -1.0}, "an arrival at"),
        ({"arrivals.0.at_s": 1e12}, "do not follow one another"),
        ({"arrivals.1.read": 9}, "network reads"),
        ({"arrivals.1.read": -1}, "network reads"),
        ({"arrivals.1.at_s": 1.5}, "at two times"),
        ({"arrivals.1.raw": "zz"}, "raw"),
        ({"arrivals.1.kind": "x"}, "kind"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_damaged_file_is_refused_with_what_is_wrong(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    content = json.loads(remote_file.to_json(RUN))
    for place, value in change.items():
        target: Any = content["requests"][0] if "." in place else content
        *steps, name = place.split(".")
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        target[name] = value
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))

    with pytest.raises(RunFileError, match=words):
        remote_file.read(path)


def test_the_table_has_a_row_for_each_arrival_with_its_tokens() -> None:
    rows = list(csv.DictReader(io.StringIO(arrivals_csv([RUN]))))
    table = pq.read_table(pa.BufferReader(arrivals_parquet([RUN])))

    role, text, end = rows
    assert (role["kind"], role["tokens"]) == ("empty", "0")
    assert (text["text"], text["bytes"]) == ("'=a\u00e9", "3d61c3a9")
    assert (text["tokens"], text["tokens_from"]) == ("2", "token ids")
    assert (text["token_ids"], text["named_tokens"]) == ("5 6", "3d61 c3a9")
    assert (text["at_s"], end["kind"]) == ("1.0", "finish")
    assert table.schema.equals(ARRIVAL_SCHEMA)
    assert table.column("text").to_pylist() == ["", "=a\u00e9", ""]


def test_the_table_of_requests_has_their_moments_on_one_zero() -> None:
    late = replace(RUN.requests[0], request_id="r1", is_warm_up=True)
    late = replace(late, marks=replace(late.marks, planned_s=0.25, sent_s=0.5))
    load = LoadPlan(spacing=Spacing.CONSTANT, rate_per_s=4.0, requests=1, warm_up=1)
    run = replace(RUN, requests=(*RUN.requests, late), load=load)

    rows = list(csv.DictReader(io.StringIO(requests_csv([run]))))
    table = pq.read_table(pa.BufferReader(requests_parquet([run])))

    assert [row["warm_up"] for row in rows] == ["false", "true"]
    assert [row["first_token_s"] for row in rows] == ["1.0", "1.0"]
    assert [row["ttft_s"] for row in rows] == ["1.0", "0.5"]
    assert (rows[1]["planned_s"], rows[1]["sent_s"]) == ("0.25", "0.5")
    assert (rows[0]["rate_per_s"], rows[0]["concurrency"]) == ("4.0", "")
    assert (rows[0]["output_tokens"], rows[0]["tpot_s"]) == ("2", "")
    assert table.schema.equals(REQUEST_SCHEMA)


def test_a_run_without_requests_has_an_empty_table() -> None:
    assert arrivals_csv([replace(RUN, requests=())]).count("\n") == 1
