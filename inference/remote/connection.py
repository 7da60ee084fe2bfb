"""Connections to one endpoint, with a time stamp for each network read.

One layer below httpx2, since that joins and splits what was read: here every piece of a body comes
with the read that brought its end. Nothing follows redirects, uses a proxy or reads settings of the
environment but those of certificates.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Self, cast

import httpcore2

from inference.remote.address import Endpoint

CONNECT_LIMIT_S = 5.0
KEEP_ALIVE_S = 4.0  # uvicorn, which most engines use, closes after 5
MOST_CONNECTIONS = 1024


class TimedStream(httpcore2.AsyncNetworkStream):
    """A connection that knows when its latest read returned.

    Attributes:
        reads: How many reads returned.
        read_ns: When the latest did, on the host's monotonic clock.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self.reads = 0
        self.read_ns = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, and stamp it."""
        received = await self._inner.read(max_bytes, timeout)
        self.read_ns = perf_counter_ns()
        self.reads += 1
        return received

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection under TLS, whose reads are stamped too."""
        return TimedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  as the class that is extended
        """Return what is known of the connection."""
        return self._inner.get_extra_info(info)


class TimedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections whose reads are stamped."""

    def __init__(self) -> None:
        # A class in place of it, for where anyio is missing, hides what it is from the types.
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a new connection."""
        inner = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return TimedStream(inner)

    async def sleep(self, seconds: float) -> None:
        """Wait between tries to connect."""
        await self._inner.sleep(seconds)


@dataclass(slots=True)
class WireMarks:
    """Moments of one exchange on the host's monotonic clock, in ns; None where not reached."""

    connecting_ns: int | None = None
    connected_ns: int | None = None
    written_ns: int | None = None
    headers_ns: int | None = None

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        """Take an event of the connection."""
        now_ns = perf_counter_ns()
        if event == "connection.connect_tcp.started":
            self.connecting_ns = now_ns
        elif event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self.connected_ns = now_ns
        elif event == "http11.send_request_body.complete":
            self.written_ns = now_ns
        elif event == "http11.receive_response_headers.complete":
            self.headers_ns = now_ns


@dataclass(frozen=True, slots=True)
class BodyPart:
    """Bytes of a body, with the read that brought them."""

    content: bytes
    read_ns: int
    read: int


@dataclass(slots=True)
class Reply:
    """An answer whose headers have come."""

    status: int
    headers: dict[str, str]
    marks: WireMarks
    _response: httpcore2.Response = field(repr=False)

    @property
    def content_type(self) -> str:
        """The kind of content, in small letters and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def parts(self) -> AsyncGenerator[BodyPart]:
        """Yield the body as it comes, in order.

        Raises:
            httpcore2 errors: The connection broke, or nothing came for too long.
        """
        stream: TimedStream = self._response.extensions["network_stream"]
        async with aclosing(self._response.aiter_stream()) as pieces:
            async for piece in pieces:
                yield BodyPart(piece, stream.read_ns, stream.reads)

    async def first_bytes(self, most: int) -> bytes:
        """Return the body, or its first bytes where it is longer."""
        content = bytearray()
        async with aclosing(self.parts()) as parts:
            async for part in parts:
                content += part.content
                if len(content) >= most:
                    break
        return bytes(content[:most])


class Wire:
    """The connections to one endpoint; used and closed on one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=MOST_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=TimedBackend(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._pool.aclose()

    @asynccontextmanager
    async def exchange(
        self, path: str, body: bytes | None, *, silence_s: float, marks: WireMarks
    ) -> AsyncGenerator[Reply]:
        """Send a request and give its answer; leaving closes the stream, read or not.

        Args:
            path: Below the endpoint's prefix.
            body: JSON to post; None for a GET.
            silence_s: Longest wait for the next byte of the answer.
            marks: Takes the moments.

        Raises:
            httpcore2 errors: The connection failed, or nothing came for too long.
        """
        limits = {"connect": CONNECT_LIMIT_S, "read": silence_s, "write": silence_s}
        async with self._pool.stream(
            "GET" if body is None else "POST",
            self._url(path),
            headers=self._headers(has_body=body is not None),
            content=body,
            extensions={"timeout": {**limits, "pool": silence_s}, "trace": marks.note},
        ) as response:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers
            }
            yield Reply(response.status, headers, marks, response)

    def _url(self, path: str) -> httpcore2.URL:
        endpoint = self.endpoint
        return httpcore2.URL(
            scheme=endpoint.scheme,
            host=endpoint.host,
            port=endpoint.port,
            target=f"{endpoint.prefix}{path}",
        )

    def _headers(self, *, has_body: bool) -> list[tuple[str, str]]:
        # Compression would hide when tokens came.
        headers = [("Accept", "*/*"), ("Accept-Encoding", "identity")]
        headers.append(("User-Agent", "token-by-token"))
        if has_body:
            headers.append(("Content-Type", "application/json"))
        if self.endpoint.key is not None:
            headers.append(("Authorization", f"Bearer {self.endpoint.key}"))
        return headers
