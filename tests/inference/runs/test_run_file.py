"""Runs come back from files as they were, and nothing else is read without complaint."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from inference.figures.disturbance import is_disturbed
from inference.records.errors import InputError, RunFileError
from inference.records.model import (
    Device,
    LayerType,
    MatrixRole,
    ModelShape,
    TokenPiece,
    WeightMatrix,
)
from inference.records.options import Sampling
from inference.records.run import Output, Request, RunInfo, RunTrace
from inference.records.status import RunState
from inference.records.steps import CacheState, Candidate, Finish, Phase, RowStep, StepEvent
from inference.records.telemetry import TelemetrySample, Unavailable
from inference.runs.run_file import read, read_bytes, to_json, write
from tests.builders import run_from_json

REMOVED = "(removed)"
ROW = ("events", 0, "rows", 0)
SHAPE = ModelShape(
    model_type="llama",
    vocab_size=320,
    hidden_size=32,
    intermediate_size=None,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=128,
    tie_word_embeddings=False,
    layer_types=(LayerType.FULL, LayerType.SLIDING),
    sliding_window=16,
    weight_bytes=12_345,
    kv_dtype_bytes=8,
    kv_bytes_per_token=None,
    matrices=(
        WeightMatrix(
            name="self_attn.q_proj",
            in_features=32,
            out_features=32,
            copies=2,
            bytes=16_384,
            role=MatrixRole.LINEAR,
        ),
    ),
)
INFO = RunInfo(
    run_id="r1",
    model_id="tiny",
    shape=SHAPE,
    device=Device(kind="cpu", name="a processor", dtype="float64", memory_bytes=None),
    attention="sdpa",
    clock="host",
    seed=7,
    started_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    versions=(("torch", "2.13.0"),),
)


def step(index: int, finish: Finish | None = None) -> StepEvent:
    """Return a step with figures that have no short decimal form."""
    row = RowStep(
        request_id="a",
        slot=0,
        query_tokens=3 if index == 0 else 1,
        context_tokens=3 + index,
        token_id=5 + index,
        logprob=-0.1 / 3,
        finish=finish,
        candidates=(Candidate(token_id=5, logprob=-1 / 3), Candidate(token_id=6, logprob=-2.5)),
    )
    return StepEvent(
        index=index,
        phase=Phase.DECODE if index else Phase.PREFILL,
        rows=(row,),
        cache=CacheState(
            tokens_per_layer=(3 + index, 3 + index),
            used_bytes=100,
            allocated_bytes=128,
            bytes_per_layer=(64, 64),
        ),
        started_s=0.1 + index / 3,
        duration_s=0.1 + 0.2,
        observed=False,
        cold=index == 0,
        run_delay_s=index / 7,
    )


TRACE = RunTrace(
    info=INFO,
    requests=(
        Request(
            request_id="a",
            prompt_text="é 👩‍👩‍👧 <b>\0",
            prompt_ids=(1, 2, 3),
            max_new_tokens=2,
            sampling=Sampling(temperature=0.7, top_p=0.9),
        ),
    ),
    events=(step(0), step(1, Finish.LENGTH)),
    telemetry=(TelemetrySample(at_s=0.25, cpu_busy_ratio=1 / 3), TelemetrySample(at_s=0.5)),
    outputs=(Output(request_id="a", token_ids=(5, 6), text="\ufffd"),),
    pieces=(
        TokenPiece(token_id=5, raw=b"\xf0\x9f"),
        TokenPiece(token_id=6, raw=b"", is_special=True),
    ),
    unavailable=(Unavailable(reading="power_w", reason="no NVIDIA driver"),),
    state=RunState.STOPPED,
    message="stopped by the user",
)


def spoiled(place: tuple[str | int, ...], value: object) -> str:
    """Return the run file with another value at one place, or without it for ``REMOVED``."""
    content: Any = json.loads(to_json(TRACE))
    part = content
    for key in place[:-1]:
        part = part[key]
    if value is REMOVED:
        part.pop(place[-1])
    else:
        part[place[-1]] = value
    return json.dumps(content)


def test_a_run_comes_back_equal() -> None:
    assert run_from_json(to_json(TRACE)) == TRACE


def test_the_file_has_the_schema_first_and_the_records_own_names() -> None:
    content = json.loads(to_json(TRACE))

    assert next(iter(content.items())) == ("schema_version", 1)
    assert set(content) - {"schema_version"} == {
        field.name for field in dataclasses.fields(RunTrace)
    }
    assert content["pieces"][0]["raw"] == "f09f"
    assert content["events"][0]["phase"] == "prefill"


def test_what_is_not_known_stays_null() -> None:
    content = json.loads(to_json(TRACE))

    assert content["telemetry"][1]["gpu_busy_ratio"] is None
    assert content["info"]["device"]["memory_bytes"] is None


def test_a_field_that_an_earlier_program_did_not_write_takes_its_default() -> None:
    text = spoiled((*ROW, "candidates"), REMOVED)

    assert run_from_json(text).events[0].rows[0].candidates == ()


def test_a_step_of_an_earlier_program_says_nothing_of_disturbance() -> None:
    text = spoiled(("events", 1, "run_delay_s"), REMOVED)

    assert run_from_json(text).events[1].run_delay_s is None
    assert not is_disturbed(run_from_json(text).events[1])


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_files_hold_one_run_or_several(name: str, tmp_path: Path) -> None:
    path = tmp_path / name

    write(TRACE, path)
    assert read(path) == (TRACE,)
    write((TRACE, TRACE), path)
    assert read(path) == (TRACE, TRACE)

    assert [left.name for left in tmp_path.iterdir()] == [name]


def test_a_file_that_was_packed_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "renamed.json"
    path.write_bytes(gzip.compress(to_json(TRACE).encode()))

    assert read(path) == (TRACE,)


def test_a_number_that_is_not_finite_is_never_written() -> None:
    broken = dataclasses.replace(TRACE, telemetry=(TelemetrySample(at_s=math.nan),))

    with pytest.raises(RunFileError, match="not finite"):
        to_json(broken)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    folder = tmp_path / "run.json"
    folder.mkdir()

    with pytest.raises(InputError, match="cannot be written"):
        write(TRACE, folder)

    assert [left.name for left in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("info",), REMOVED, "info: field required"),
        (("events", 1, "duration_s"), -1, r"events\[1\]: a step time of -1"),
        (("events", 0, "index"), "0", r"events\[0\].index: .*integer"),
        (("events", 0, "index"), True, r"events\[0\].index: .*integer"),
        (("events", 0, "index"), 1, r"events\[0\].index: 1 where 0"),
        (("events", 0, "started_s"), math.inf, "started_s: .*finite"),
        (("events", 0, "phase"), "warm", r"events\[0\].phase"),
        (("events", 0, "rows"), [], r"events\[0\].rows: none"),
        ((*ROW, "request_id"), "z", "not among"),
        ((*ROW, "token_id"), -1, "beyond all reason"),
        ((*ROW, "context_tokens"), 10**15, "beyond all reason"),
        (("events", 0, "cache", "allocated_bytes"), 10**30, "more than any machine"),
        (("outputs", 0, "request_id"), "z", "not among"),
        (("requests",), [json.loads(to_json(TRACE))["requests"][0]] * 2, "same request_id"),
        (("requests", 0, "prompt_ids"), [-1], "negative id"),
        (("pieces", 0, "raw"), "xy", r"pieces\[0\].raw"),
        (("schema_version",), 2, "update the program"),
        (("schema_version",), 0, "never was"),
        (("schema_version",), REMOVED, "no run of this program"),
    ],
    ids=str,
)
def test_a_damaged_file_is_refused_and_the_field_named(
    place: tuple[str | int, ...], value: object, said: str
) -> None:
    with pytest.raises(RunFileError, match=said):
        run_from_json(spoiled(place, value))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "no run", id="empty"),
        pytest.param(b"[]", "no run", id="no runs"),
        pytest.param(b"null", "no run", id="null"),
        pytest.param(b"PK\x03\x04", "damaged or cut short", id="zip"),
        pytest.param(b"\xff\xfe{", "damaged or cut short", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "damaged or cut short", id="deep"),
        pytest.param(to_json(TRACE).encode()[:-50], "damaged or cut short", id="cut"),
        pytest.param(gzip.compress(b"{}")[:-8], "cut short", id="packed and cut"),
        pytest.param(b"\x1f\x8bnonsense", "compression is broken", id="badly packed"),
    ],
)
def test_what_is_no_run_file_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(RunFileError, match=said):
        read_bytes(content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_file_beyond_the_cap_is_refused_unread(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.runs.run_file.MAX_FILE_BYTES", 1000)

    with pytest.raises(RunFileError, match="larger than"):
        read_bytes(pack(to_json(TRACE).encode()))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"gone\.json cannot be read"):
        read(tmp_path / "gone.json")


def test_a_file_with_the_former_name_of_a_field_opens_with_its_value() -> None:
    """``capture_s`` was written as ``look_s``, and readers ignore what they do not know."""
    event = dataclasses.replace(TRACE.events[0], capture_s=0.25)
    request = dataclasses.replace(TRACE.requests[0], prompt_text='say "look_s": now')
    run = dataclasses.replace(
        TRACE, requests=(request, *TRACE.requests[1:]), events=(event, *TRACE.events[1:])
    )
    old = to_json(run).replace('"capture_s":', '"look_s":')

    assert run_from_json(old) == run
