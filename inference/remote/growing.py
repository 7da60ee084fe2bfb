"""A run at an address while it grows: the server is asked what it takes, then each prompt is sent.

The command line and the pages carry a run out by this; they differ in where it is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from time import perf_counter_ns

from inference.records.arrivals import RemoteAsk, RemoteRun
from inference.records.endpoints import EndpointInfo
from inference.records.status import RunState
from inference.remote.address import Endpoint
from inference.remote.asking import ask, go_on
from inference.remote.connection import Wire
from inference.remote.gauges import falls_to_rest
from inference.remote.identify import chosen_model, identify
from inference.remote.messages import message_for
from inference.remote.recorder import RequestRecorder
from inference.remote.tries import taken_extras, tried

NS = 1e-9
REST_LIMIT_S = 3.0  # until an engine has noticed that nobody reads


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOrder:
    """What is asked of the endpoint, before its model is known."""

    asks: tuple[RemoteAsk, ...]
    model: str | None
    silence_s: float

    @property
    def is_raw(self) -> bool:
        """True when prompts go without a chat template."""
        return self.asks[0].is_raw


def identified(endpoint: Endpoint) -> EndpointInfo:
    """Return what a server says of itself, within some seconds; on a thread without a loop.

    Raises:
        EndpointError: It cannot be reached, asks for a key, or is no engine.
    """
    return asyncio.run(_identified(endpoint))


async def _identified(endpoint: Endpoint) -> EndpointInfo:
    async with Wire(endpoint) as wire:
        return await identify(wire)


async def opened(wire: Wire, order: EndpointOrder) -> tuple[EndpointInfo, tuple[RemoteAsk, ...]]:
    """Return what the server says and takes, and what is asked of it, its model named.

    Raises:
        InputError: No model is named and the server has several, or it lacks a setting.
        EndpointError: It does not answer.
    """
    info = await identify(wire)
    model = chosen_model(info, order.model)
    asks = tuple(replace(one, model_id=model) for one in order.asks)
    message_for(asks[0], info.engine, ())  # refuses a setting before anything is generated
    info = await tried(wire, info, model, is_raw=order.is_raw, silence_s=order.silence_s)
    return info, asks


class GrowingRun:
    """Requests sent one after another; used on one event loop."""

    def __init__(self, run_id: str, info: EndpointInfo) -> None:
        self._run_id = run_id
        self._info = info
        self._zero_ns, self._started_at = perf_counter_ns(), datetime.now(UTC)
        self._recorders: list[RequestRecorder] = []

    async def send(self, wire: Wire, asks: Sequence[RemoteAsk], silence_s: float) -> None:
        """Send each request once the one before has ended well.

        Cancelling the task closes the stream, and the run says whether the engine has noticed.
        """
        try:
            for index, named in enumerate(asks):
                message = message_for(named, self._info.engine, taken_extras(self._info))
                planned_s = (perf_counter_ns() - self._zero_ns) * NS
                recorder = RequestRecorder(
                    f"r{index}", named, zero_ns=self._zero_ns, planned_s=planned_s
                )
                self._recorders.append(recorder)
                await ask(wire, message, recorder, silence_s=silence_s)
                if recorder.state is not RunState.DONE:
                    break
        except asyncio.CancelledError:
            if not self._recorders:
                raise
            go_on()
            self._recorders[-1].note(await _rest_note(wire))

    def snapshot(self) -> RemoteRun:
        """Return the run as it stands."""
        return RemoteRun(
            run_id=self._run_id,
            endpoint=self._info,
            started_at=self._started_at,
            versions=(("httpcore2", version("httpcore2")),),
            requests=tuple(recorder.snapshot() for recorder in self._recorders),
        )


async def _rest_note(wire: Wire) -> str:
    """Return whether the engine has left the request that was stopped, in a sentence."""
    has_left = await falls_to_rest(wire, limit_s=REST_LIMIT_S)
    if has_left is None:
        return "the engine does not say whether it has left the request"
    if has_left:
        return "the engine runs fewer requests since, or none"
    return (
        f"the engine runs as many requests as before {REST_LIMIT_S:g} s after the stream was closed"
    )
