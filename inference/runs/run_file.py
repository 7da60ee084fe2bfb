"""Runs to files and back: JSON with the records' own field names, ``.gz`` where the name says so.

A file holds one run, or a list of them. Reading trusts nothing: types are checked strictly, sizes
are capped, and each complaint names the field. Bytes are written as hexadecimal. No torch.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import SchemaValidator

from inference.records.arrivals import RunSource
from inference.records.errors import InputError, RunFileError
from inference.records.run import SCHEMA_VERSION, RunTrace
from inference.records.steps import Phase, RowStep
from inference.runs.packed_attention import attention_problem
from inference.runs.strict_reading import check_values, file_text, strict_validator
from inference.storage.atomic_write import replace_file
from inference.storage.named_files import write_named_file

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_RUNS = 10_000  # in one file
LONGEST_TIME_S = 1e9  # thirty years
# Records are plain dataclasses without settings of their own, so these hold for all inside.
STRICT = ConfigDict(
    strict=True,
    allow_inf_nan=False,
    ser_json_inf_nan="constants",
    ser_json_bytes="hex",
    val_json_bytes="hex",
)
MAX_TOKENS = 2**31 - 1  # no context and no vocabulary comes near
MAX_BYTES = 2**63 - 1
# A quote inside a JSON string is escaped, so one that is not, before a colon, ends a name.
OLD_NAMES = ((re.compile(rb'(?<!\\)"look_s"(?=\s*:)'), b'"capture_s"'),)
NOT_OURS = "the file is no run of this program; open one that was saved here"
OTHER_READERS: dict[str, str] = {
    RunSource.ENDPOINT: "the file holds a run of an engine at an address, which has arrivals and "
    "no steps; `python -m inference arrivals FILE` shows it",
    RunSource.THIS_MACHINE: "the file holds a run of this program's own engine; open it on the "
    "Runs page",
}


@dataclass(config=STRICT)
class _Head:
    """What every run file has, whatever its schema; where it was made, if elsewhere."""

    schema_version: int
    source: str = RunSource.THIS_MACHINE.value


def to_json(traces: RunTrace | Sequence[RunTrace]) -> str:
    """Return the run file of one run, or of several as a list.

    Raises:
        RunFileError: A run holds a number that is not finite.
    """
    runs = (traces,) if isinstance(traces, RunTrace) else tuple(traces)
    plain: list[dict[str, Any]] = _runs_model()(runs).model_dump(mode="json")
    files = [{"schema_version": SCHEMA_VERSION, **run} for run in plain]
    try:
        return json.dumps(
            files[0] if len(files) == 1 else files,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
        )
    except ValueError as error:
        msg = f"the run cannot be saved: a number in it is not finite ({error}); run it again"
        raise RunFileError(msg) from error


def read(path: Path) -> tuple[RunTrace, ...]:
    """Return the runs of a file.

    Raises:
        RunFileError: It is missing, damaged, not ours, newer than this program, or too large.
    """
    return read_bytes(content_of(path))


def content_of(path: Path) -> bytes:
    """Return a file's content; of one that is too large, enough to refuse it.

    Raises:
        RunFileError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}; check the path"
        raise RunFileError(msg) from error


def read_bytes(content: bytes) -> tuple[RunTrace, ...]:
    """Return the runs of a file's content, compressed or not.

    Raises:
        RunFileError: It is damaged, not ours, newer than this program, or too large.
    """
    listed = listed_runs(content, RunSource.THIS_MACHINE, SCHEMA_VERSION)
    try:
        runs = _runs_validator().validate_json(listed)
    except ValidationError as error:
        msg = f"the run file is damaged: {complaint(error)}; save the run again"
        raise RunFileError(msg) from error
    for index, run in enumerate(runs):
        _check_consistent(run, index)
    return runs


def listed_runs(content: bytes, source: RunSource, newest_schema: int) -> bytes:
    """Return the JSON list of the runs in a file's content, compressed or not.

    Args:
        content: The file's.
        source: Where its runs have to come from.
        newest_schema: The newest that is read.

    Raises:
        RunFileError: It is damaged, too large, not ours, from elsewhere, or too new.
    """
    text = file_text(content, "run file", MAX_FILE_BYTES)
    listed = with_current_names(text if text.startswith(b"[") else b"[" + text + b"]")
    check_values(listed)
    _check_heads(listed, source, newest_schema)
    return listed


def with_current_names(text: bytes) -> bytes:
    """Return JSON of a run in which fields have the names that the records have today."""
    for pattern, name in OLD_NAMES:
        text = pattern.sub(name, text)
    return text


def write(traces: RunTrace | Sequence[RunTrace], path: Path, *, is_private: bool = False) -> None:
    """Write a run file at once: readers see the former file or the whole of this one.

    Args:
        traces: One run or several.
        path: As a user named it; a link is followed, and a pipe or a device is written to.
        is_private: The file is one of this program's own, and nobody but the user may read it.

    Raises:
        InputError: There is no room, or the folder may not be written.
    """
    write_text(to_json(traces), path, is_private=is_private)


def write_text(text: str, path: Path, *, is_private: bool = False) -> None:
    """Write the text of a run file, compressed where its name says so.

    Raises:
        InputError: There is no room, or the folder may not be written.
    """
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # no date inside: equal runs make equal files
    try:
        if is_private:
            replace_file(path, content, is_private=True)
        else:
            write_named_file(path, content)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror or error}; free some room or choose "
        msg += "another folder"
        raise InputError(msg) from error


@cache
def _runs_model() -> type[RootModel[tuple[RunTrace, ...]]]:
    """Return the validator, built at first use: it takes a tenth of a second."""

    class Runs(RootModel[tuple[RunTrace, ...]]):
        model_config = STRICT

    return Runs


@cache
def _runs_validator() -> SchemaValidator:
    """Return what reads runs, likewise."""
    return strict_validator(_runs_model())


@cache
def _heads_validator() -> SchemaValidator:
    """Return what reads the heads of runs, likewise."""

    class Heads(RootModel[Annotated[list[_Head], Field(max_length=MAX_RUNS)]]):
        model_config = STRICT

    return strict_validator(Heads)


def _check_heads(listed: bytes, source: RunSource, newest_schema: int) -> None:
    """Raise RunFileError unless every run is JSON of a source and schema that are read here."""
    try:
        heads = _heads_validator().validate_json(listed)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        is_json = first["type"] != "json_invalid"
        msg = NOT_OURS if is_json else f"the run file is damaged or cut short: {first['msg']}; "
        msg += "" if is_json else "copy it again"
        raise RunFileError(msg) from error
    if not heads:
        raise RunFileError(NOT_OURS)
    for head in heads:
        if head.source != source:
            raise RunFileError(OTHER_READERS.get(head.source, NOT_OURS))
        if head.schema_version > newest_schema:
            msg = f"the run file has schema {head.schema_version} and this program reads up to "
            msg += f"{newest_schema}; update the program"
            raise RunFileError(msg)
        if head.schema_version < 1:
            msg = f"the run file has schema {head.schema_version}, which never was; save it again"
            raise RunFileError(msg)


def complaint(error: ValidationError) -> str:
    """Return the first thing wrong in a run file, as `events[0].duration_s: what is wrong`."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"][1:]
    )
    message = first["msg"].removeprefix("Value error, ")
    return f"{field.removeprefix('.')}: {message[:1].lower()}{message[1:]}"


def _check_consistent(run: RunTrace, index: int) -> None:
    """Raise RunFileError where parts of a run contradict each other."""
    checks = (_request_problem, _time_problem, _event_problem, _growth_problem, attention_problem)
    for check in checks:
        problem = check(run)
        if problem is not None:
            msg = f"the run file is damaged: run {index + 1}, {problem}; save the run again"
            raise RunFileError(msg)


def _request_problem(run: RunTrace) -> str | None:
    ids = [request.request_id for request in run.requests]
    if not ids:
        return "requests: none"
    if len(set(ids)) != len(ids):
        return "requests: two have the same request_id"
    id_set = set(ids)
    if any(output.request_id not in id_set for output in run.outputs):
        return "outputs: a request_id that is not among the requests"
    if any(token < 0 for request in run.requests for token in request.prompt_ids):
        return "requests: prompt_ids holds a negative id"
    return None


def _time_problem(run: RunTrace) -> str | None:
    """Return where a time is beyond all reason, so that sums of them would be too."""
    for index, request in enumerate(run.requests):
        if not 0 <= request.arrival_s <= LONGEST_TIME_S:
            return f"requests[{index}].arrival_s: {request.arrival_s:g} s"
    for index, event in enumerate(run.events):
        times = (event.started_s, event.duration_s, event.capture_s or 0.0)
        parts = tuple(part.duration_s for part in event.parts)
        if max(map(abs, times + parts)) > LONGEST_TIME_S:
            return f"events[{index}]: a time of more than thirty years"
    for index, sample in enumerate(run.telemetry):
        if abs(sample.at_s) > LONGEST_TIME_S:
            return f"telemetry[{index}].at_s: more than thirty years"
    return None


def _event_problem(run: RunTrace) -> str | None:
    request_ids = {request.request_id for request in run.requests}
    for index, event in enumerate(run.events):
        if event.index != index:
            return f"events[{index}].index: {event.index} where {index} was expected"
        if not event.rows:
            return f"events[{index}].rows: none"
        if any(row.request_id not in request_ids for row in event.rows):
            return f"events[{index}].rows: a request_id that is not among the requests"
        if any(_is_absurd(row) for row in event.rows):
            return f"events[{index}].rows: a token id or a context beyond all reason"
        if event.cache.allocated_bytes > MAX_BYTES:
            return f"events[{index}].cache.allocated_bytes: more than any machine has"
    return None


def _growth_problem(run: RunTrace) -> str | None:
    """Return where a sequence's steps do not follow from one another."""
    stored = {request.request_id: 0 for request in run.requests}
    selected: dict[str, list[int]] = {request_id: [] for request_id in stored}
    for index, event in enumerate(run.events):
        for row in event.rows:
            if stored[row.request_id] == 0 and event.phase is not Phase.PREFILL:
                return f"events[{index}]: a decode step before any prefill of {row.request_id}"
            stored[row.request_id] += row.query_tokens
            if row.context_tokens != stored[row.request_id]:
                return f"events[{index}].rows: context_tokens does not follow from what was fed"
            if row.token_id is not None:
                selected[row.request_id].append(row.token_id)
    for output in run.outputs:
        if list(output.token_ids) != selected[output.request_id]:
            return f"outputs: the tokens of {output.request_id} are not those its steps selected"
    return None


def _is_absurd(row: RowStep) -> bool:
    return row.context_tokens > MAX_TOKENS or not 0 <= (row.token_id or 0) <= MAX_TOKENS
