"""Playlists that are made to do harm: refused or read soon, and without much memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys

import pytest

MEMORY_BYTES = 3 * 2**30
PATIENCE_S = 100
HEAD = b'{"playlist_version":1,"items":['
READ = """
import sys
from inference.records.errors import RunFileError
from inference.runs.playlist_file import read_playlist
try:
    [item] = read_playlist(sys.stdin.buffer.read()).items
    print("the item:", item.problem)
except RunFileError as error:
    print(error)
"""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@pytest.mark.parametrize(
    "content",
    [
        HEAD + b"1," * 120_000_000 + b"1]}",
        HEAD + b"[]," * 2_000_000 + b"[]]}",
        HEAD + b'{"run":{"schema_version":1,"events":[' + b"1," * 4_000_000 + b"1]}}]}",
    ],
    ids=["numbers", "items", "run of wrong steps"],
)
def test_a_bomb_is_a_sentence_within_a_limit_on_memory(content: bytes) -> None:
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
