"""Run files that are made to do harm: refused soon, in a sentence, and without much memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs.run_file import read_bytes, to_json
from inference.runs.store import RunStore
from tests.builders import run_info
from tests.visuals.live_doubles import HubUnderTest
from tests.visuals.traces import trace_of

MEMORY_BYTES = 4 * 2**30
PATIENCE_S = 300
HEAD = b'{"schema_version":1,"events":['
READ = """
import sys
from inference.records.errors import RunFileError
from inference.runs.run_file import read_bytes
try:
    read_bytes(sys.stdin.buffer.read())
except RunFileError as error:
    print(error)
"""


def trace() -> RunTrace:
    """Return a short run that is in order."""
    return replace(trace_of([b"why", b" so"], [b"be", b"cause", b"."]), info=run_info("run-1"))


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@pytest.mark.parametrize(
    "content",
    [
        HEAD + b"1," * 120_000_000 + b"1]}",
        HEAD + b"[]," * 60_000_000 + b"[]]}",
        HEAD + b"1," * 4_000_000 + b"1]}",
        HEAD + b"{}," * 1_500_000 + b"{}]}",
        b"[" + b'{"schema_version":1},' * 1_000_000 + b'{"schema_version":1}]',
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
    ],
    ids=["numbers", "lists", "wrong numbers", "wrong steps", "runs", "deep lists", "deep objects"],
)
def test_a_bomb_is_refused_within_a_limit_on_memory(content: bytes) -> None:
    reader = subprocess.run(
        [sys.executable, "-c", READ],
        input=gzip.compress(content, 1),
        capture_output=True,
        timeout=PATIENCE_S,
        preexec_fn=limited,
        check=False,
    )

    assert reader.returncode == 0, reader.stderr.decode()[-500:]
    assert reader.stdout.startswith(b"the ")
    assert reader.stdout.count(b"\n") == 1


@pytest.mark.parametrize("seconds", [1e308, 1e10])
def test_a_step_of_more_than_thirty_years_is_refused(seconds: float) -> None:
    run = trace()
    events = (replace(run.events[0], duration_s=seconds), *run.events[1:])

    with pytest.raises(RunFileError, match=r"events\[0\]"):
        read_bytes(to_json(replace(run, events=events)).encode())


def named(run_id: str) -> RunTrace:
    run = trace()
    return replace(run, info=replace(run.info, run_id=run_id))


@pytest.mark.parametrize("run_id", ["a/b", "../../etc", "%2F", "a b", ""])
def test_a_run_under_an_id_that_no_address_can_hold_is_shown_under_another(run_id: str) -> None:
    hub = HubUnderTest().hub
    [read] = read_bytes(to_json(named(run_id)).encode())

    shown = hub.adopt(read)

    assert "/" not in shown.run_id
    assert hub.find(shown.run_id) is shown
    assert hub.adopt(read) is shown


def test_a_folder_that_became_read_only_does_not_keep_the_program_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = RunStore(tmp_path).journal("run")
    journal.append(trace())

    def refused(_path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Read-only file system", str(missing_ok))

    monkeypatch.setattr(Path, "unlink", refused)
    journal.release()
    journal.remove()
