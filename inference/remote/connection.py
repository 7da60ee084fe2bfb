"""Connections to one endpoint, with a time stamp for each network read.

One layer below httpx2, since that joins and splits what was read: here every piece of a body comes
with the read that brought its end. Nothing follows redirects, uses a proxy or reads settings of the
environment but those of certificates.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Self

import httpcore2

from inference.remote.address import Endpoint
from inference.remote.timed_stream import TimedBackend, TimedStream

CONNECT_LIMIT_S = 5.0
KEEP_ALIVE_S = 4.0  # uvicorn, which most engines use, closes after 5
MOST_CONNECTIONS = 1024


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
        # Made once: reading the certificates takes milliseconds, in which no stream is read.
        is_secured = endpoint.scheme == "https"
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpcore2.default_ssl_context() if is_secured else None,
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
