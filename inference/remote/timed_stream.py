"""TCP connections whose reads are stamped the moment that the event loop takes them.

When many streams have something at once, the loop takes all of it first and wakes their readers
then, one after another; a stamp made by a reader would hold the work of those before it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from time import perf_counter_ns
from typing import Any, cast

import httpcore2

MOST_WAITING_BYTES = 4 * 2**20  # beyond them the sender is held back
CLOSE_LIMIT_S = 0.5
EYEBALLS_S = 0.25  # until the next address of a name is tried beside the first


class _Protocol(asyncio.Protocol):
    """Collects what the loop reads, each with its moment and number."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[bytes, int, int]] = deque()
        self.is_over = False
        self.error: Exception | None = None
        self.is_lost = asyncio.Event()
        self.came = asyncio.Event()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self._transport: asyncio.Transport | None = None
        self._reads = 0
        self._size = 0
        self._is_held = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reads += 1
        self.waiting.append((data, perf_counter_ns(), self._reads))
        self._size += len(data)
        if self._size > MOST_WAITING_BYTES and self._transport is not None and not self._is_held:
            self._transport.pause_reading()
            self._is_held = True
        self.came.set()

    def eof_received(self) -> bool:
        self.is_over = True
        self.came.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self.error = exc
        self.is_lost.set()
        self.came.set()
        self.may_write.set()

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def take(self, most: int) -> tuple[bytes, int, int]:
        """Return the oldest bytes with their moment and number, at most so many of them."""
        content, read_ns, read = self.waiting.popleft()
        if len(content) > most:
            self.waiting.appendleft((content[most:], read_ns, read))
            content = content[:most]
        self._size -= len(content)
        if self._is_held and not self.waiting and self._transport is not None:
            self._transport.resume_reading()
            self._is_held = False
        return content, read_ns, read


class TimedStream(httpcore2.AsyncNetworkStream):
    """A connection that knows when its latest read was taken.

    Attributes:
        reads: Number of the latest read.
        read_ns: When the loop took it, on the host's monotonic clock.
    """

    def __init__(self, transport: asyncio.Transport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self.reads = 0
        self.read_ns = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, nothing at its end.

        Raises:
            httpcore2.ReadTimeout: Nothing came in time.
            httpcore2.ReadError: The connection broke.
        """
        protocol = self._protocol
        try:
            async with asyncio.timeout(timeout):
                while not protocol.waiting and not protocol.is_over:
                    protocol.came.clear()
                    await protocol.came.wait()
        except TimeoutError as error:
            raise httpcore2.ReadTimeout from error
        if protocol.waiting:
            content, self.read_ns, self.reads = protocol.take(max_bytes)
            return content
        if protocol.error is not None:
            raise httpcore2.ReadError(str(protocol.error)) from protocol.error
        return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes.

        Raises:
            httpcore2.WriteTimeout: They were not taken in time.
            httpcore2.WriteError: The connection broke.
        """
        if buffer and not self._protocol.is_lost.is_set():
            self._transport.write(buffer)
        try:
            async with asyncio.timeout(timeout):
                await self._protocol.may_write.wait()
        except TimeoutError as error:
            raise httpcore2.WriteTimeout from error
        if self._protocol.is_lost.is_set():
            raise httpcore2.WriteError(str(self._protocol.error or "the connection was closed"))

    async def aclose(self) -> None:
        """Close the connection at once."""
        self._transport.abort()
        with suppress(TimeoutError):  # a handshake that failed may keep the news to itself
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self._protocol.is_lost.wait()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection under TLS, whose reads are stamped too.

        Raises:
            httpcore2.ConnectTimeout: The other side did not answer in time.
            httpcore2.ConnectError: It speaks no TLS, or its certificate is not valid.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                secured = await loop.start_tls(
                    self._transport, self._protocol, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            await self.aclose()
            raise httpcore2.ConnectTimeout from error
        except OSError as error:  # those of ssl among them
            await self.aclose()
            raise httpcore2.ConnectError(str(error)) from error
        if secured is None:
            raise httpcore2.ConnectError("the connection was closed")
        return TimedStream(secured, self._protocol)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  as the class that is extended
        """Return whether an idle connection has something to read, or what asyncio knows of it."""
        if info == "is_readable":
            return bool(self._protocol.waiting) or self._protocol.is_over
        return self._transport.get_extra_info(info)


class TimedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections whose reads are stamped."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002  as the class that is extended
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Return a new connection.

        Raises:
            httpcore2.ConnectTimeout: The other side did not answer in time.
            httpcore2.ConnectError: Nothing listens there, or there is no such host.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                transport, protocol = await loop.create_connection(
                    _Protocol, host, port, happy_eyeballs_delay=EYEBALLS_S
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        return TimedStream(transport, protocol)

    async def sleep(self, seconds: float) -> None:
        """Wait between tries to connect."""
        await asyncio.sleep(seconds)
