"""What is kept of prompts can be read by their user only, whatever the system's usual modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.runs.store import RunStore
from tests.builders import run_info
from tests.visuals.traces import trace_of


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Let new files be readable by everybody, as some systems do."""
    former = os.umask(0)
    yield
    os.umask(former)


@pytest.mark.usefixtures("open_to_all")
def test_nobody_else_can_read_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir(mode=0o777)
    store = RunStore(tmp_path)
    trace = replace(trace_of([b"secret"], [b"s"]), info=run_info("run-1"))
    journal = store.journal("run-2")
    journal.append(trace)
    entry = store.save(trace)
    store.rename(entry.key, "a name")
    gone = store.save(replace(trace, info=run_info("run-3")))
    store.delete((gone.key,))

    kept = [path for path in store.folder.rglob("*") if path.suffix != ".lock"]
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (store.folder, *kept)}
    journal.remove()

    assert len(kept) > 4
    for path, mode in modes.items():
        usual = 0o600 if path.suffix else 0o700
        assert (path.name, oct(mode)) == (path.name, oct(usual))
