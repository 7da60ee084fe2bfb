"""`load` against a scripted server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.commands import INTERRUPTED
from inference.records.arrivals import LoadPlan, Spacing
from inference.records.endpoints import EngineKind
from inference.records.status import RunState
from inference.runs.remote_file import read
from tests.inference.remote.scripted_server import (
    HOLD,
    Script,
    ScriptedServer,
    running_server,
    said,
)
from tests.inference.remote.streams import CHAT, VLLM, engine_routes

BAD_INPUT = 2


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ScriptedServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(shared_server: ScriptedServer) -> ScriptedServer:
    shared_server.clear()
    shared_server.routes |= engine_routes(EngineKind.VLLM)
    return shared_server


def load(server: ScriptedServer, *arguments: str) -> int:
    given = ["--prompt", "Hello?", "--max-new-tokens", "3", "--requests", "6"]
    return main(["load", "--endpoint", server.address, *given, *arguments])


def test_each_concurrency_is_a_load_of_its_own(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "load.json"

    code = load(server, "--concurrency", "1,3", "--out", str(out))

    lines = capsys.readouterr().out.splitlines()
    runs = read(out)
    assert code == 0
    assert [one.load for one in runs] == [
        LoadPlan(spacing=Spacing.CLOSED, concurrency=number, requests=6, warm_up=number)
        for number in (1, 3)
    ]
    assert [len(one.requests) for one in runs] == [7, 9]
    assert len(server.asked(CHAT)) == 1 + 7 + 9
    assert main(["arrivals", str(out), "--out", str(tmp_path / "t.csv"), "--requests"]) == 0
    assert (tmp_path / "t.csv").read_text().count("\n") == 1 + 7 + 9
    assert any(line.startswith("1 at a time: 6 finished, 0 did not") for line in lines)
    assert any(line.startswith("3 at a time: TTFT from sent median") for line in lines)


def test_an_open_loop_says_what_was_wanted_and_what_was_sent(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ["--ttft-limit", "60", "--tpot-limit", "60"]

    code = load(server, "--rate", "500", "--spacing", "constant", *limits)

    said_text = capsys.readouterr().out
    assert code == 0
    assert "500/s: TTFT from planned median" in said_text
    assert "requests/s of 500 wanted, waited here median" in said_text
    assert " kept both limits" in said_text


def test_a_load_without_one_answer_fails_with_the_reason(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = iter(range(100))
    whole = server.routes[CHAT]
    server.routes[CHAT] = lambda _request: whole if next(calls) == 0 else said({"error": "x"}, 503)

    code = load(server, "--concurrency", "2")

    both = capsys.readouterr()
    assert code == BAD_INPUT
    assert "0 finished, 6 did not" in both.out
    assert "8 times:" in both.out
    assert "answers 503: x" in both.err.splitlines()[-1]


def test_ctrl_c_ends_the_loads_and_saves_what_came(server: ScriptedServer, tmp_path: Path) -> None:
    whole = server.routes[CHAT]
    calls = iter(range(100))
    held = Script((*VLLM[:2], HOLD))
    server.routes[CHAT] = lambda _request: whole if next(calls) == 0 else held
    out = tmp_path / "load.json"
    command = [sys.executable, "-m", "inference", "load", "--endpoint", server.address]
    command += ["--prompt", "Hello?", "--concurrency", "2,4", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert server.opened.wait(60)
        os.kill(program.pid, signal.SIGINT)
        _, said_bytes = program.communicate(timeout=60)

    [kept] = read(out)
    assert program.returncode == INTERRUPTED, said_bytes
    assert b"Traceback" not in said_bytes
    assert {one.state for one in kept.requests} == {RunState.STOPPED}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--concurrency", "1,x"], "--concurrency is '1,x'"),
        (["--concurrency", "0"], "--concurrency holds 0"),
        (["--concurrency", "1.5"], "whole numbers"),
        (["--rate", "nan"], "--rate holds nan"),
        (["--rate", "inf"], "--rate holds inf"),
        (["--concurrency", "1", "--requests", "0"], "--requests is 0"),
        (["--concurrency", "1", "--warm-up", "-1"], "--warm-up is -1"),
        (["--concurrency", "1", "--ttft-limit", "1"], "needs both"),
        (["--concurrency", "1", "--ttft-limit", "nan", "--tpot-limit", "1"], "needs both"),
        (["--concurrency", "1", "--out", "/nowhere/x.json"], "does not exist"),
        (["--concurrency", "1", "--rate", "1"], "not allowed with"),
        ([], "is required"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_nothing_is_sent(
    server: ScriptedServer,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    code = load(server, *arguments)

    said_text = capsys.readouterr().err
    assert code == BAD_INPUT
    assert words in said_text
    assert said_text.count("\n") == 1
    assert server.received == []
