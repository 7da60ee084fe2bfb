"""What the hub answers becomes one sentence: a server of our own stands for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from inference.models.hf_hub import cached_folder, is_hub_id

ANSWERS = {"missing": (401, "RepoNotFound"), "gated": (403, "GatedRepo"), "broken": (500, "")}
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "model.onnx": b"not wanted"}
COMMIT = "a" * 40
SCRIPT = """
import sys
from inference.records.errors import TokenByTokenError
from inference.models.hf_hub import fetch_from_hub
try:
    print(fetch_from_hub(sys.argv[1], "main", print))
except TokenByTokenError as error:
    print(type(error).__name__, error, sep=": ")
"""


class Hub(BaseHTTPRequestHandler):
    """Has the one model ``owner/whole`` and refuses others as their names say."""

    def do_GET(self) -> None:
        """Answer as the hub does, as far as its client asks."""
        name = self.path.rpartition("/")[2]
        if "owner/whole" not in self.path:
            refusal = next((answer for key, answer in ANSWERS.items() if key in self.path), None)
            status, code = refusal or ANSWERS["broken"]
            self.answer(status, b"", {"X-Error-Code": code})
        elif "/tree/" in self.path:
            self.answer(200, json.dumps(tree()).encode(), {})
        elif "/api/" in self.path:
            listing = {"id": "owner/whole", "sha": COMMIT, "siblings": siblings()}
            self.answer(200, json.dumps(listing).encode(), {})
        else:
            headers = {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT}
            self.answer(200, FILES[name], headers)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Send one answer, without its body where only the head was asked for."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815  the server's own naming

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def siblings() -> list[dict[str, str]]:
    """Return the model's files as the hub lists them beside its description."""
    return [{"rfilename": name} for name in FILES]


def tree() -> list[dict[str, object]]:
    """Return the model's files as the hub lists a commit."""
    return [
        {"type": "file", "path": name, "size": len(body), "oid": name}
        for name, body in FILES.items()
    ]


@pytest.fixture(scope="module")
def endpoint() -> Generator[str]:
    """Address of the server that stands for the hub."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def answer(model: str, endpoint: str, cache: Path, *, is_offline: bool = False) -> str:
    """Return what fetching the model from that hub says, in a process of its own."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache)}
    environment |= {"HF_HUB_OFFLINE": str(int(is_offline)), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


def test_a_model_is_fetched_with_its_progress_and_found_again_offline(
    endpoint: str, tmp_path: Path
) -> None:
    said = answer("owner/whole", endpoint, tmp_path)
    folder = Path(said.splitlines()[-1])
    again = answer("owner/whole", endpoint, tmp_path, is_offline=True)

    assert "LoadStage(stage='downloading owner/whole', ratio=1.0)" in said
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    assert Path(again.splitlines()[-1]) == folder


@pytest.mark.parametrize(
    ("model", "said"),
    [
        pytest.param("owner/missing", "ModelNotFoundError: the hub has no model", id="missing"),
        pytest.param("owner/gated", "ModelNotFoundError: owner/gated is gated", id="gated"),
        pytest.param("owner/broken", "FetchError: ", id="server error"),
    ],
)
def test_a_refusal_of_the_hub_is_a_sentence(
    model: str, said: str, endpoint: str, tmp_path: Path
) -> None:
    assert answer(model, endpoint, tmp_path).startswith(said)


@pytest.mark.parametrize("is_offline", [True, False], ids=["offline by wish", "no server there"])
def test_without_a_network_the_sentence_says_so(is_offline: bool, tmp_path: Path) -> None:
    said = answer("owner/name", "http://127.0.0.1:9", tmp_path, is_offline=is_offline)

    assert said.startswith("FetchError: owner/name is not on this machine")


@pytest.mark.parametrize("text", ["gpt2", "owner/name", "Qwen/Qwen2.5-0.5B-Instruct"])
def test_a_hub_id_is_recognised(text: str) -> None:
    assert is_hub_id(text)


@pytest.mark.parametrize("text", ["", "a/b/c", "/abs", "./here", "../up", "a b", "x" * 200, "a\0"])
def test_what_cannot_be_a_hub_id_is_never_asked_for(text: str) -> None:
    assert not is_hub_id(text)


def test_a_model_that_was_never_fetched_has_no_folder() -> None:
    assert cached_folder("owner/never-fetched") is None
