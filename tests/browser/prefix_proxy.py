"""A proxy that serves the app below a path of its own, and takes that path off every request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"
CHUNK_BYTES = 64 * 1024


@contextmanager
def proxied(url: str, prefix: str) -> Generator[str]:
    """Yield the address under which the app at ``url`` is to be found below a prefix."""
    target = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        address = (str(target.hostname), int(target.port or 80))
        threading.Thread(target=_serve, args=(listener, address, prefix), daemon=True).start()
        yield f"http://127.0.0.1:{port}{prefix}"


def _serve(listener: socket.socket, target: tuple[str, int], prefix: str) -> None:
    with suppress(OSError):  # closed: the test is over
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_relay, args=(client, target, prefix), daemon=True).start()


def _relay(client: socket.socket, target: tuple[str, int], prefix: str) -> None:
    """Pass one request on, without its prefix, and then whatever either side sends."""
    with client, suppress(OSError):
        received = b""
        while HEAD_END not in received:
            chunk = client.recv(CHUNK_BYTES)
            if not chunk:
                return
            received += chunk
        head, _, body = received.partition(HEAD_END)
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(prefix.encode()):
            client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" + HEAD_END[:2])
            return
        # One request a connection: the head of a second one would pass unchanged.
        rest = rest.replace(b"Connection: keep-alive", b"Connection: close")
        with socket.create_connection(target) as server:
            bare = path.removeprefix(prefix.encode()) or b"/"
            server.sendall(b" ".join((method, bare, rest)) + HEAD_END + body)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Pass on all that comes until there is no more."""
    with suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
