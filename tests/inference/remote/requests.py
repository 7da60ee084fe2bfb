"""Requests to a scripted server, and what was recorded of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter_ns

from inference.records.arrivals import Channel, RemoteAsk, RemoteRequest
from inference.records.endpoints import EndpointInfo, EngineKind, Extra
from inference.records.options import Sampling
from inference.remote.address import Endpoint, endpoint_at
from inference.remote.asking import ask
from inference.remote.chunks import Chunk
from inference.remote.connection import BodyPart, Wire, WireMarks
from inference.remote.identify import identify
from inference.remote.messages import Message, message_for
from inference.remote.recorder import RequestRecorder
from inference.remote.tries import tried

HELLO = RemoteAsk(model_id="m", prompt_text="Hello?", max_new_tokens=8, sampling=Sampling(), seed=1)


def new_recorder(wanted: RemoteAsk = HELLO) -> RequestRecorder:
    return RequestRecorder("r0", wanted, zero_ns=perf_counter_ns(), planned_s=0.0)


def asked(
    address: str | Endpoint,
    *,
    engine: EngineKind = EngineKind.OTHER,
    extras: Sequence[Extra] = (),
    wanted: RemoteAsk = HELLO,
    silence_s: float = 20.0,
) -> RemoteRequest:
    """Return one request, on a connection of its own."""
    message = message_for(wanted, engine, extras)
    return asked_in_turn(address, [message], silence_s=silence_s)[0]


def asked_in_turn(
    address: str | Endpoint, messages: Sequence[Message], *, silence_s: float = 20.0
) -> list[RemoteRequest]:
    """Return requests that were sent one after another, on the same connection where it stayed."""
    endpoint = endpoint_at(address) if isinstance(address, str) else address

    async def run() -> list[RemoteRequest]:
        recorders = [new_recorder() for _ in messages]
        async with Wire(endpoint) as wire:
            for message, recorder in zip(messages, recorders, strict=True):
                await ask(wire, message, recorder, silence_s=silence_s)
        return [recorder.snapshot() for recorder in recorders]

    return asyncio.run(run())


def found_at(
    address: str | Endpoint, *, is_tried: bool = False, is_raw: bool = False
) -> EndpointInfo:
    """Return what a server says of itself, and what came of its extras."""
    endpoint = endpoint_at(address) if isinstance(address, str) else address

    async def run() -> EndpointInfo:
        async with Wire(endpoint) as wire:
            info = await identify(wire)
            return await tried(wire, info, "m", is_raw=is_raw) if is_tried else info

    return asyncio.run(run())


def recorded(
    *reads: tuple[float, Sequence[Chunk]], sent_s: float = 0.0, finish: bool = True
) -> RemoteRequest:
    """Return a request whose chunks came in these reads, on a clock written down."""
    recorder = RequestRecorder("r0", HELLO, zero_ns=0, planned_s=0.0)
    recorder.sent(round(sent_s * 1e9), WireMarks(), ())
    for number, (at_s, chunks) in enumerate(reads):
        part = BodyPart(b"", round(at_s * 1e9), number)
        recorder.came(part)
        for chunk in chunks:
            recorder.take(chunk, part)
    recorder.end("" if finish else "cut")
    return recorder.snapshot()


def text_of(request: RemoteRequest, channel: Channel = Channel.ANSWER) -> bytes:
    return b"".join(one.raw for one in request.arrivals if one.channel is channel)
