"""How exactly arrivals are timed here: ``python -m inference.bench.reading_lag`` prints JSON.

Many paced streams at once, whose events say when they were written: the lag of a read is its stamp
less that. Then an open loop: the rate that was sent beside the one wanted. No engine, no torch.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass

from inference.bench.paced_server import paced_server
from inference.figures.latency import percentile
from inference.records.arrivals import LoadPlan, RemoteAsk, RemoteRequest, Spacing
from inference.records.endpoints import EngineKind
from inference.records.options import Sampling
from inference.records.status import RunState
from inference.remote.address import endpoint_at
from inference.remote.connection import Wire
from inference.remote.load import LoadOrder, LoadOutcome, run_load

STREAMS = 64
TOKENS_PER_S = 50.0
TOKENS = 250
RATE_PER_S = 100.0
REQUESTS = 500
SHORT_TOKENS = 4
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class LagFigures:
    """How late reads were stamped, and whether an open loop kept its rate.

    Attributes:
        reads: Events that were timed.
        lag_p50_s: Of the reads' stamps behind the moments in which the server wrote.
        sent_ratio: The rate that was sent, by the rate that was wanted.
        load_average: Of the machine over a minute, afterwards: others disturb this.
    """

    streams: int
    tokens_per_s: float
    reads: int
    lag_p50_s: float
    lag_p99_s: float
    lag_max_s: float
    open_loop_per_s: float
    sent_ratio: float
    load_average: float


def measure() -> LagFigures:
    """Measure both; about twelve seconds."""
    closed = LoadPlan(spacing=Spacing.CLOSED, concurrency=STREAMS, requests=STREAMS)
    opened = LoadPlan(spacing=Spacing.POISSON, rate_per_s=RATE_PER_S, requests=REQUESTS)
    with paced_server(TOKENS_PER_S) as address:
        streams = asyncio.run(_load(address, closed, TOKENS))
        arrived = asyncio.run(_load(address, opened, SHORT_TOKENS))
    lags_s = sorted(lag for one in streams.requests for lag in _lags_s(one, streams.zero_ns))
    sent = sorted(one.marks.sent_s or 0.0 for one in arrived.requests)
    return LagFigures(
        streams=STREAMS,
        tokens_per_s=TOKENS_PER_S,
        reads=len(lags_s),
        lag_p50_s=percentile(lags_s, 0.50) or 0.0,
        lag_p99_s=percentile(lags_s, 0.99) or 0.0,
        lag_max_s=lags_s[-1],
        open_loop_per_s=RATE_PER_S,
        sent_ratio=(REQUESTS - 1) / (sent[-1] - sent[0]) / RATE_PER_S,
        load_average=os.getloadavg()[0],
    )


async def _load(address: str, plan: LoadPlan, tokens: int) -> LoadOutcome:
    wanted = RemoteAsk(
        model_id="paced", prompt_text="-", max_new_tokens=tokens, sampling=Sampling(), seed=0
    )
    order = LoadOrder(asks=(wanted,), engine=EngineKind.OTHER, extras=())
    async with Wire(endpoint_at(address)) as wire:
        outcome = await run_load(wire, plan, order)
    failed = [one.message for one in outcome.requests if one.state is not RunState.DONE]
    if failed:
        msg = f"{len(failed)} of the streams failed, the first with: {failed[0]}"
        raise RuntimeError(msg)
    return outcome


def _lags_s(request: RemoteRequest, zero_ns: int) -> list[float]:
    return [
        one.at_s + (zero_ns - int(written)) / NS_PER_S
        for one in request.arrivals
        for written in one.raw.split()
    ]


if __name__ == "__main__":
    json.dump(asdict(measure()), sys.stdout, indent=2)
    sys.stdout.write("\n")
