"""A real nginx with TLS before the app, set up with the passage of README and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE_TARGET = "http://127.0.0.1:8501"
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running nginx.

    Attributes:
        url: Of the app behind it.
        logs: Where it writes.
        trust: Takes its certificate and no other.
    """

    url: str
    logs: Path
    trust: ssl.SSLContext


@contextmanager
def nginx_before(url: str, folder: Path) -> Generator[Proxy]:
    """Yield the proxy of README before an app."""
    blocks = re.findall(r"^```nginx\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    assert EXAMPLE_TARGET in blocks[0]
    nginx, openssl = program("nginx"), program("openssl")
    certificate, key, logs = folder / "certificate.pem", folder / "key.pem", folder / "logs"
    logs.mkdir()
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''}\n"
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {logs}/error.log info;\nevents {{}}\n"
        f"http {{\n{temporary}access_log {logs}/access.log;\nserver {{\n"
        f"listen 127.0.0.1:{port} ssl;\nssl_certificate {certificate};\n"
        f"ssl_certificate_key {key};\n{blocks[0].replace(EXAMPLE_TARGET, url)}}}\n}}\n",
        encoding="utf-8",
    )
    said = logs / "said.log"
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", f"{logs}/start.log"],
            stderr=stderr,
        )
    try:
        _wait_for(port, process, said)
        path = re.search(r"location (/\S*/) ", blocks[0])
        assert path is not None
        yield Proxy(
            url=f"https://localhost:{port}{path[1].rstrip('/')}",
            logs=logs,
            trust=ssl.create_default_context(cafile=str(certificate)),
        )
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def program(name: str) -> str:
    """Return the path of a program; skip the test where it is missing, but under CI."""
    folders = (os.environ.get("PATH", ""), "/usr/sbin")
    fetched = (ROOT / ".venv/debian/usr/sbin", ROOT / ".venv/debian/usr/bin")
    found = shutil.which(name, path=os.pathsep.join((*folders, *map(str, fetched))))
    if found is None:
        words = f"there is no {name} here; `make test` fetches it where Debian's packages are"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    return found


def _wait_for(port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"nginx did not start: {said.read_text(encoding='utf-8')}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail("nginx does not listen")
