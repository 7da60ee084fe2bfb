"""A server of streams at a fixed pace: each event says when it was written.

The moment is that of the host's monotonic clock, which all processes of a machine share on Linux.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from time import perf_counter_ns

NS_PER_S = 1e9
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'


@contextmanager
def paced_server(tokens_per_s: float) -> Generator[str]:
    """Give the address of a server in a process of its own; it ends with the block.

    A stream has as many tokens as its request asks for, the first one at once.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, tokens_per_s), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, tokens_per_s: float) -> None:
    async def run() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await _answer(reader, writer, tokens_per_s)

        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens_per_s: float
) -> None:
    """Answer one request at an absolute pace."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    body = await reader.readexactly(int(lengths[0].partition(b":")[2]))
    tokens = int(json.loads(body)["max_tokens"])
    writer.write(HEAD)
    began_ns = perf_counter_ns()
    for index in range(tokens):
        wait_s = index / tokens_per_s - (perf_counter_ns() - began_ns) / NS_PER_S
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        delta = {"delta": {"content": f"{perf_counter_ns()} "}}
        _write(writer, f"data: {json.dumps({'choices': [delta]})}\n\n".encode())
    _write(writer, LAST)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(content), content))
