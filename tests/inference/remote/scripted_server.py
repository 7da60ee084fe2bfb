"""An HTTP server that sends what a test wrote down, byte for byte, on a thread of its own."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

SSE = "text/event-stream; charset=utf-8"
LINES = "application/x-ndjson"
JSON = "application/json"


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def fields(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Script:
    """An answer: its pieces are written one by one, each as a chunk of HTTP.

    A tuple of them is written at once; HOLD keeps the stream open, BREAK cuts it.
    """

    pieces: tuple[bytes | tuple[bytes, ...] | object, ...] = ()
    status: int = 200
    kind: str = SSE
    headers: tuple[tuple[str, str], ...] = ()


HOLD, BREAK = object(), object()
Answer: TypeAlias = Script | Callable[[Received], Script]
NOT_FOUND = Script((b'{"detail":"Not Found"}',), status=404, kind=JSON)


def said(value: object, status: int = 200) -> Script:
    """Return an answer of JSON."""
    return Script((json.dumps(value).encode(),), status=status, kind=JSON)


def sse(*events: object) -> tuple[bytes, ...]:
    """Return events as server-sent events; a text stands for itself."""
    return tuple(
        f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n".encode() for one in events
    )


def ndjson(*lines: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(one).encode() + b"\n" for one in lines)


@dataclass
class ScriptedServer:
    """Where it listens, what it answers, and what it was asked."""

    scheme: str = "http"
    port: int = 0
    routes: dict[str, Answer] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    connections: int = 0
    closes_idle: bool = False

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def clear(self) -> None:
        self.routes, self.received, self.closes_idle = {}, [], False
        self.closed.clear()
        self.opened.clear()

    def asked(self, path: str) -> list[Received]:
        return [one for one in self.received if one.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._answer(reader, writer, connection):
                pass
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> bool:
        """Answer one request; return whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _version = head[0].split(" ")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Received(method, path, headers, body, connection)
        self.received.append(request)
        answer = self.routes.get(path, NOT_FOUND)
        script = answer(request) if callable(answer) else answer
        lines = [f"HTTP/1.1 {script.status} X", f"Content-Type: {script.kind}"]
        lines += [f"{name}: {value}" for name, value in script.headers]
        lines += ["Transfer-Encoding: chunked", "", ""]
        writer.write("\r\n".join(lines).encode())
        return await self._write_pieces(script, reader, writer)

    async def _write_pieces(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        for piece in script.pieces:
            if piece is BREAK:
                return False
            if piece is HOLD:
                self.opened.set()
                with suppress(ConnectionError):
                    await reader.read(1)  # until the other side closes
                self.closed.set()
                return False
            chunks = piece if isinstance(piece, tuple) else (piece,)
            assert all(isinstance(one, bytes) for one in chunks)
            writer.write(b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not self.closes_idle


@contextmanager
def running_server(tls: ssl.SSLContext | None = None) -> Generator[ScriptedServer]:
    """Run a server until the block ends."""
    server = ScriptedServer(scheme="http" if tls is None else "https")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls), loop
    ).result()
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_end(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(listening: asyncio.Server) -> None:
    listening.close()
    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
