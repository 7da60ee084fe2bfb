"""Many requests to one endpoint: a fixed number at a time, or at moments fixed beforehand.

Moments are absolute, so that one late request makes no other late. A request's planned, sent and
first moments are kept apart: waiting on this side is neither hidden nor called the engine's.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import accumulate
from time import perf_counter_ns

from inference.records.arrivals import LoadPlan, RemoteAsk, RemoteRequest, RemoteRun, Spacing
from inference.records.endpoints import EndpointInfo, EngineKind, Extra
from inference.remote.asking import ask, go_on
from inference.remote.connection import Wire
from inference.remote.gauges import read_gauges
from inference.remote.messages import SILENCE_S, message_for
from inference.remote.recorder import RequestRecorder

NS_PER_S = 1e9
LOOK_EVERY_S = 0.005
LATE_SHARE = 0.99
NONCE_WORDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOrder:
    """What is sent.

    Attributes:
        asks: The prompts, taken in turn.
        extras: Extra fields that the server takes.
        on_ended: Told how many requests have ended.
    """

    asks: Sequence[RemoteAsk]
    engine: EngineKind
    extras: Sequence[Extra]
    silence_s: float = SILENCE_S
    on_ended: Callable[[int], None] = lambda _ended: None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What was recorded of a load, in the order sent.

    Attributes:
        lateness_s: How late this side's event loop was, the 99th of a hundred times; None where it
            was over before anybody could look.
        zero_ns: The zero of all its moments, on the host's monotonic clock.
    """

    requests: tuple[RemoteRequest, ...]
    lateness_s: float | None
    is_stopped: bool
    zero_ns: int


def planned_moments(plan: LoadPlan) -> tuple[float, ...]:
    """Return the moment of each request of an open loop from its beginning, warm-up first.

    Random distances are scaled so that the requests take as long as the rate says.

    Source:
        Distances of a Poisson process are exponentially distributed.
    """
    if plan.rate_per_s is None:
        msg = "a closed loop plans no moments"
        raise ValueError(msg)
    wanted = plan.warm_up + plan.requests
    whole_s = (wanted - 1) / plan.rate_per_s
    if plan.spacing is Spacing.CONSTANT:
        return tuple(index / plan.rate_per_s for index in range(wanted))
    source = random.Random(plan.seed)
    moments = [0.0, *accumulate(source.expovariate(1.0) for _ in range(wanted - 1))]
    scale = whole_s / moments[-1] if moments[-1] else 0.0
    return tuple(moment * scale for moment in moments)


async def run_load(wire: Wire, plan: LoadPlan, order: LoadOrder) -> LoadOutcome:
    """Return what was recorded; cancelling closes the streams and ends it with what came."""
    load = _Load(wire, plan, order)
    late_s: list[float] = []
    is_stopped = False
    watch = asyncio.create_task(_watch_lateness(late_s))
    try:
        if plan.spacing is Spacing.CLOSED:
            await load.closed_loop()
        else:
            await load.open_loop()
    except asyncio.CancelledError:
        is_stopped = True
        go_on()
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
    ordered = sorted(late_s)
    late = ordered[int(LATE_SHARE * (len(ordered) - 1))] if ordered else None
    return LoadOutcome(
        requests=load.requests(), lateness_s=late, is_stopped=is_stopped, zero_ns=load.zero_ns
    )


async def recorded_load(
    wire: Wire, info: EndpointInfo, plan: LoadPlan, order: LoadOrder
) -> tuple[RemoteRun | None, bool]:
    """Return a load with the engine's metrics before and after, and whether it was stopped.

    The run is None where nothing was sent.
    """
    before = await read_gauges(wire)
    started_at = datetime.now(UTC)
    outcome = await run_load(wire, plan, order)
    if not outcome.requests:
        return None, outcome.is_stopped
    run = RemoteRun(
        run_id=secrets.token_urlsafe(6),
        endpoint=info,
        started_at=started_at,
        versions=(("httpcore2", version("httpcore2")),),
        requests=outcome.requests,
        load=plan,
        lateness_s=outcome.lateness_s,
        gauges_before=before,
        gauges_after=await read_gauges(wire),
    )
    return run, outcome.is_stopped


class _Load:
    """One load while it goes.

    Attributes:
        zero_ns: The zero of its moments.
    """

    def __init__(self, wire: Wire, plan: LoadPlan, order: LoadOrder) -> None:
        self._wire = wire
        self._plan = plan
        self._order = order
        self.zero_ns = perf_counter_ns()
        self._recorders: list[RequestRecorder] = []
        self._ended = 0

    async def closed_loop(self) -> None:
        """Keep as many requests under way as planned; the warm-up hands over to the others."""
        numbers = iter(range(self._plan.warm_up + self._plan.requests))
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._plan.concurrency or 1):
                workers.create_task(self._work(numbers))

    async def open_loop(self) -> None:
        """Send each request at its moment, whatever became of those before."""
        async with asyncio.TaskGroup() as sent:
            for number, moment_s in enumerate(planned_moments(self._plan)):
                wait_s = moment_s - self._now_s()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                sent.create_task(self._send(number, moment_s))

    def requests(self) -> tuple[RemoteRequest, ...]:
        """Return what was recorded."""
        return tuple(recorder.snapshot() for recorder in self._recorders)

    async def _work(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self._send(number, self._now_s())

    async def _send(self, number: int, planned_s: float) -> None:
        plan, order = self._plan, self._order
        is_warm_up = number < plan.warm_up
        wanted = order.asks[number % len(order.asks)]
        if is_warm_up or plan.is_cold:
            wanted = _with_own_words(wanted, f"{plan.seed}/{self.zero_ns}/{number}")
        name = f"w{number}" if is_warm_up else f"r{number - plan.warm_up}"
        recorder = RequestRecorder(name, wanted, zero_ns=self.zero_ns, planned_s=planned_s)
        recorder.is_warm_up = is_warm_up
        self._recorders.append(recorder)
        message = message_for(wanted, order.engine, order.extras)
        await ask(self._wire, message, recorder, silence_s=order.silence_s)
        self._ended += 1
        order.on_ended(self._ended)

    def _now_s(self) -> float:
        return (perf_counter_ns() - self.zero_ns) / NS_PER_S


def _with_own_words(wanted: RemoteAsk, name: str) -> RemoteAsk:
    """Return a prompt with words in front that no other has, so that its prefix is not known."""
    source = random.Random(name)
    words = " ".join(f"{source.randrange(10_000)}" for _ in range(NONCE_WORDS))
    if not wanted.turns:
        return replace(wanted, prompt_text=f"{words}. {wanted.prompt_text}")
    (role, content), *rest = wanted.turns
    return replace(wanted, turns=((role, f"{words}. {content}"), *rest))


async def _watch_lateness(late_s: list[float]) -> None:
    """Note how much later than asked the event loop comes back, again and again."""
    while True:
        began_ns = perf_counter_ns()
        await asyncio.sleep(LOOK_EVERY_S)
        late_s.append((perf_counter_ns() - began_ns) / NS_PER_S - LOOK_EVERY_S)
