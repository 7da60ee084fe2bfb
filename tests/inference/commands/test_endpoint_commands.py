"""`run --endpoint`, `serve-info` and `arrivals` against a scripted server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference.__main__ import main
from inference.commands import INTERRUPTED
from inference.figures.arrivals import answer_text
from inference.records.endpoints import EngineKind
from inference.records.status import RunState
from inference.runs.remote_file import read
from tests.inference.remote.scripted_server import (
    HOLD,
    Received,
    Script,
    ScriptedServer,
    running_server,
    said,
    sse,
)
from tests.inference.remote.streams import CHAT, LLAMA_CPP, VLLM, engine_routes

KEY_NAME, KEY = "TESTED_ENGINE_KEY", "sk-of-the-test-1"
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


def run(server: ScriptedServer, out: Path, *arguments: str) -> int:
    given = ["--prompt", "Hello?", "--max-new-tokens", "3", "--out", str(out)]
    return main(["run", "--endpoint", server.address, *given, *arguments])


def test_a_run_at_an_address_writes_a_run_file_and_says_its_figures(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"

    code = run(server, out, "--prompt", "And you?", "--seed", "7")

    [kept] = read(out)
    said_lines = capsys.readouterr().err.splitlines()
    assert code == 0
    assert said_lines[0] == f"asking {server.address} without a key"
    assert [one.ask.prompt_text for one in kept.requests] == ["Hello?", "And you?"]
    assert {answer_text(one) for one in kept.requests} == {"Hello"}
    assert (kept.endpoint.engine, kept.endpoint.address) == (EngineKind.VLLM, server.address)
    assert server.asked(CHAT)[-1].fields["seed"] == 7
    assert any("3 tokens (counted from token ids), TTFT" in line for line in said_lines)
    assert any("by the engine's own clock: queue 5 ms" in line for line in said_lines)
    assert any("1 of the tokens came without text" in line for line in said_lines)


def test_the_key_is_sent_and_is_in_no_file_and_no_output(
    server: ScriptedServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(KEY_NAME, f" {KEY}\n")
    out = tmp_path / "run.json"

    code = run(server, out, "--key-env", KEY_NAME)

    said_text = "".join(capsys.readouterr())
    assert code == 0
    assert {one.headers["authorization"] for one in server.received} == {f"Bearer {KEY}"}
    assert KEY not in out.read_text()
    assert KEY not in said_text
    assert f"with the key in {KEY_NAME}" in said_text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch"], "--batch set this program's own engine"),
        (["--dtype", "float32", "--capture", "1"], "--dtype, --capture set"),
        (["--key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
        (["--max-new-tokens", "0"], "--max-new-tokens is 0"),
        (["--temperature", "nan"], "--temperature is nan"),
        (["--top-k", "0"], "--top-k is 0"),
        (["--top-p", "2"], "--top-p is 2"),
        (["--silence", "0"], "--silence is 0"),
        (["--silence", "nan"], "--silence is nan"),
        (["--prompt", "  "], "a prompt is empty"),
        (["--prompt", "a\udcff"], "no UTF-8"),
        (["--out", "/nowhere/run.json"], "does not exist"),
        (["--endpoint", "ftp://host"], "none of a server that speaks http"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_nothing_is_sent(
    server: ScriptedServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    code = run(server, tmp_path / "run.json", *arguments)

    said_text = capsys.readouterr().err
    assert code == BAD_INPUT
    assert words in said_text
    assert said_text.count("\n") == 1
    assert server.received == []


def test_a_setting_that_the_engine_has_not_is_refused(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.routes = engine_routes(EngineKind.TRANSFORMERS)

    code = run(server, tmp_path / "run.json", "--top-k", "5")

    assert code == BAD_INPUT
    assert "leave top-k out" in capsys.readouterr().err


def test_a_server_that_is_down_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = ScriptedServer(port=9)  # nothing listens where the discard service was

    code = run(gone, tmp_path / "run.json")

    assert code == BAD_INPUT
    assert "cannot be reached" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run.json").exists()


def test_a_run_that_fails_keeps_what_came_and_ends_with_the_reason(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def second_fails(request: Received) -> Script:
        is_try = request.fields["messages"][0]["content"] == "Hi"
        return Script(VLLM if is_try else (*VLLM[:2], *sse({"error": "out of memory"})))

    server.routes[CHAT] = second_fails
    out = tmp_path / "run.json"

    code = run(server, out)

    [kept] = read(out)
    assert code == BAD_INPUT
    assert "out of memory" in capsys.readouterr().err.splitlines()[-1]
    assert kept.requests[0].state is RunState.FAILED
    assert answer_text(kept.requests[0]) == "Hel"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_stream_and_saves_what_came(
    server: ScriptedServer, tmp_path: Path, sent: signal.Signals
) -> None:
    def held(request: Received) -> Script:
        is_try = request.fields["messages"][0]["content"] == "Hi"
        return Script(VLLM if is_try else (*VLLM[:2], HOLD))

    server.routes[CHAT] = held
    out = tmp_path / "run.json"
    command = [sys.executable, "-m", "inference", "run", "--endpoint", server.address]
    command += ["--prompt", "Hello?", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert server.opened.wait(60)
        os.kill(program.pid, sent)
        _, said_text = program.communicate(timeout=60)

    [kept] = read(out)
    assert program.returncode == INTERRUPTED, said_text
    assert "Traceback" not in said_text
    assert server.closed.wait(20)
    assert kept.requests[0].state is RunState.STOPPED
    assert kept.requests[0].notes == ("the engine does not say whether it has left the request",)


def test_serve_info_says_what_is_there_and_asks_for_no_token(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["serve-info", server.address])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[:2] == [f"vLLM 0.32.0 at {server.address}", "model m, context 4,096"]
    assert "token ids: documented (not tried yet)" in lines
    assert "the engine's own times: documented (needs --enable-per-request-metrics)" in lines
    assert {one.method for one in server.received} == {"GET"}


def test_serve_info_says_what_the_engine_does_now(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = b"vllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.125\n"
    server.routes["/metrics"] = Script((page,), kind="text/plain")

    main(["serve-info", server.address])

    lines = capsys.readouterr().out.splitlines()
    assert "requests running: 2" in lines
    assert "room for K/V in use: 12.5%" in lines
    assert "requests waiting: this version does not say" in lines


def test_serve_info_prints_json_of_what_was_tried(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.routes = engine_routes(EngineKind.LLAMA_CPP)

    code = main(["serve-info", server.address, "--try", "--json"])

    info: dict[str, Any] = json.loads(capsys.readouterr().out)
    answers = {one["extra"]: one["answer"] for one in info["offers"]}
    assert code == 0
    assert info["engine"] == "llama.cpp"
    assert answers["prompt progress"] == "yes"
    assert answers["metrics page"] == "no"


def test_several_models_are_asked_about(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.routes["/v1/models"] = said({"data": [{"id": "a"}, {"id": "b"}]})

    code = run(server, tmp_path / "run.json")

    assert code == BAD_INPUT
    assert "serves a, b; name one with --model" in capsys.readouterr().err
    assert run(server, tmp_path / "run.json", "--model", "b") == 0
    assert server.asked(CHAT)[-1].fields["model"] == "b"


def test_arrivals_of_a_file_are_shown_and_written_as_a_table(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.routes = engine_routes(EngineKind.LLAMA_CPP)
    run(server, tmp_path / "run.json")
    capsys.readouterr()

    for name in ("table.csv", "table.parquet"):
        assert main(["arrivals", str(tmp_path / "run.json"), "--out", str(tmp_path / name)]) == 0

    text = (tmp_path / "table.csv").read_text(encoding="utf-8-sig")
    assert text.count("\n") == len(LLAMA_CPP)
    assert (tmp_path / "table.parquet").read_bytes().startswith(b"PAR1")
    assert "5 tokens (counted from the engine's running count)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"), [("table.xls", "neither .csv nor"), ("no/table.csv", "does not exist")]
)
def test_a_table_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    code = main(["arrivals", str(tmp_path / "run.json"), "--out", str(tmp_path / name)])

    assert code == BAD_INPUT
    assert words in capsys.readouterr().err
