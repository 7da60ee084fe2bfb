"""Runs of engines at an address to files and back: the run file's form, with arrivals for steps.

``source`` says where a run was made, so that each reader names the other's files instead of calling
them damaged. Bytes are written as hexadecimal. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import RootModel, ValidationError
from pydantic_core import SchemaValidator

from inference.records.arrivals import RemoteRequest, RemoteRun, RunSource
from inference.records.errors import RunFileError
from inference.runs.run_file import (
    LONGEST_TIME_S,
    STRICT,
    complaint,
    content_of,
    listed_runs,
    write_text,
)
from inference.runs.strict_reading import strict_validator

REMOTE_SCHEMA = 2  # 1 is that of runs with steps, whose older readers say that 2 is newer


def to_json(runs: RemoteRun | Sequence[RemoteRun]) -> str:
    """Return the run file of one run, or of several as a list."""
    several = (runs,) if isinstance(runs, RemoteRun) else tuple(runs)
    plain: list[dict[str, Any]] = _runs_model()(several).model_dump(mode="json")
    files = [{"schema_version": REMOTE_SCHEMA, **run} for run in plain]
    return json.dumps(
        files[0] if len(files) == 1 else files,
        allow_nan=False,
        ensure_ascii=False,
        separators=(",", ":"),
    )


def write(runs: RemoteRun | Sequence[RemoteRun], path: Path) -> None:
    """Write a run file at once.

    Raises:
        InputError: There is no room, or the folder may not be written.
    """
    write_text(to_json(runs), path)


def read(path: Path) -> tuple[RemoteRun, ...]:
    """Return the runs of a file.

    Raises:
        RunFileError: It is missing, damaged, not of an address, newer than this program, too large.
    """
    listed = listed_runs(content_of(path), RunSource.ENDPOINT, REMOTE_SCHEMA)
    try:
        runs: tuple[RemoteRun, ...] = _runs_validator().validate_json(listed)
    except ValidationError as error:
        msg = f"the run file is damaged: {complaint(error)}; save the run again"
        raise RunFileError(msg) from error
    for run in runs:
        _check_consistent(run)
    return runs


@cache
def _runs_model() -> type[RootModel[tuple[RemoteRun, ...]]]:
    """Return the validator, built at first use."""

    class RemoteRuns(RootModel[tuple[RemoteRun, ...]]):
        model_config = STRICT

    return RemoteRuns


@cache
def _runs_validator() -> SchemaValidator:
    """Return what reads runs, likewise."""
    return strict_validator(_runs_model())


def _check_consistent(run: RemoteRun) -> None:
    """Raise RunFileError where parts of a run contradict each other."""
    ids = [request.request_id for request in run.requests]
    problem = None if ids else "requests: none"
    if len(set(ids)) != len(ids):
        problem = "requests: two have the same request_id"
    for request in run.requests:
        problem = problem or _request_problem(request)
    if problem is not None:
        msg = f"the run file is damaged: {problem}; save the run again"
        raise RunFileError(msg)


def _request_problem(request: RemoteRequest) -> str | None:
    name = request.request_id
    times = [one.at_s for one in request.arrivals]
    if times != sorted(times) or any(time > LONGEST_TIME_S for time in times):
        return f"{name}: arrivals that do not follow one another"
    reads = [one.read for one in request.arrivals]
    if reads != sorted(reads):
        return f"{name}: network reads that do not follow one another"
    if len(set(zip(times, reads, strict=True))) != len(set(reads)):
        return f"{name}: one network read at two times"
    return None
