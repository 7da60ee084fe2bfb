"""Limits of memory: by the machine or the user, and held by the system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inference.models.memory_limit import MemoryLimit
from inference.models.process_memory import (
    APP_SHARE,
    ENGINE_SHARE,
    LEAST_APP_BYTES,
    MEMORY_VARIABLE,
    MemoryShares,
    held_bytes,
    machine_bytes,
    shares_from,
)
from inference.records.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
GIB = 2**30
TAKE_TOO_MUCH = """
from inference.models.process_memory import lift_limit, limit_growth, room_bytes
assert room_bytes() is None
limit_growth(256 << 20)
print(200 << 20 < room_bytes() <= 256 << 20)
kept = bytearray(100 << 20)
print(room_bytes() < 160 << 20)
try:
    bytearray(1 << 30)
except MemoryError:
    print("refused")
lift_limit()
print(len(bytearray(1 << 30)) >> 30, room_bytes())
"""


def test_the_shares_are_those_of_the_machine_unless_the_user_says_otherwise() -> None:
    usual = shares_from("", 100 * GIB)

    assert usual.engine_bytes == int(100 * GIB * ENGINE_SHARE)
    assert usual.app_bytes == int(100 * GIB * APP_SHARE)
    assert shares_from("", GIB).app_bytes == LEAST_APP_BYTES
    assert shares_from(" app=2000 ", 100 * GIB) == MemoryShares(
        engine_bytes=usual.engine_bytes, app_bytes=2_000_000_000
    )
    assert shares_from("engine=0,app=0", GIB) == MemoryShares(engine_bytes=None, app_bytes=None)
    assert shares_from("", 0) == MemoryShares(engine_bytes=None, app_bytes=None)


@pytest.mark.parametrize("text", ["engine", "engine=", "engine=-1", "gpu=5", "engine=1e9", "7"])
def test_a_share_that_is_none_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match=f"no limit of memory; {MEMORY_VARIABLE} takes engine"):
        shares_from(text)


def test_the_machine_has_no_more_than_its_container_is_given() -> None:
    limit = MemoryLimit().total_bytes

    assert 0 < machine_bytes() <= (limit or sys.maxsize)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold a process to it")
def test_an_allocation_beyond_the_limit_fails_and_others_do_not() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TAKE_TOO_MUCH], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["True", "True", "refused", "1", "None"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such files")
def test_what_a_process_holds_is_known_while_it_is_there() -> None:
    mine = held_bytes()

    assert mine is not None
    assert mine == pytest.approx(held_bytes(os.getpid()), rel=0.2)
    assert held_bytes(2**22 + 1) is None
