"""An engine's metrics page to the few figures that all engines have, whatever they call them.

Source:
    vLLM 0.32 ``v1/metrics/loggers.py``, with the names of versions before; SGLang 0.5.23
    ``observability/metrics_collector.py``; llama.cpp b11549; TGI ``docs/source/reference``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter

from inference.records.endpoints import EngineGauges
from inference.remote.asking import WIRE_ERRORS
from inference.remote.complaints import GOOD
from inference.remote.connection import Wire, WireMarks
from inference.remote.identify import METRICS, MOST_BYTES, READ_LIMIT_S
from inference.remote.metrics_page import Sample, samples_in

RUNNING = (
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
    "tgi_batch_current_size",
)
WAITING = (
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
    "tgi_queue_size",
)
KV_USED = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
PREEMPTIONS = ("vllm:num_preemptions_total", "sglang:num_retracted_reqs")
# What was looked up; in llama.cpp the tokens that it fed, those that it had not among them.
PREFIX_ASKED = (
    "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_queries_total",
    "sglang:prompt_tokens_total",
)
PREFIX_HITS = (
    "vllm:prefix_cache_hits_total",
    "vllm:gpu_prefix_cache_hits_total",
    "sglang:cached_tokens_total",
    "llamacpp:prompt_tokens_cached_total",
)
LLAMA_FED = "llamacpp:prompt_tokens_total"
POLL_S = 0.1


async def read_page(wire: Wire) -> str | None:
    """Return the text of the metrics page; None where there is none that can be read."""
    try:
        async with wire.exchange(METRICS, None, silence_s=READ_LIMIT_S, marks=WireMarks()) as reply:
            if reply.status != GOOD:
                return None
            page = await reply.first_bytes(MOST_BYTES)
    except WIRE_ERRORS:
        return None
    return page.decode("utf-8", "replace")


async def read_gauges(wire: Wire) -> EngineGauges | None:
    """Return what the metrics page says; None where there is none that can be read."""
    page = await read_page(wire)
    return None if page is None else gauges_in(page)


async def falls_to_rest(wire: Wire, *, limit_s: float) -> bool | None:
    """Return whether the engine runs fewer requests within some time, or none at all.

    None where its metrics page does not say.
    """
    gauges = await read_gauges(wire)
    if gauges is None or gauges.running is None:
        return None
    before = gauges.running
    until_s = perf_counter() + limit_s
    while gauges is not None and gauges.running is not None and gauges.running >= max(before, 1):
        if perf_counter() > until_s:
            return False
        await asyncio.sleep(POLL_S)
        gauges = await read_gauges(wire)
    return True


def gauges_in(page: str) -> EngineGauges:
    """Return the figures of a metrics page; a bad line costs its own metric only."""
    samples, unreadable = samples_in(page)
    asked, hits = prefix_tokens(samples)
    return EngineGauges(
        running=total(samples, RUNNING),
        waiting=total(samples, WAITING),
        kv_used_ratio=kv_used(samples),
        prefix_asked_tokens=asked,
        prefix_hit_tokens=hits,
        preemptions=total(samples, PREEMPTIONS),
        unreadable=unreadable,
    )


def total(samples: Mapping[str, Sequence[Sample]], names: Sequence[str]) -> int | None:
    """Return the sum over the engines under the first name that is there."""
    found = next((samples[name] for name in names if samples.get(name)), None)
    return round(sum(one.value for one in found)) if found else None


def kv_used(samples: Mapping[str, Sequence[Sample]]) -> float | None:
    """Return the share of the room for K/V in use, the mean over the engines."""
    used = next((samples[name] for name in KV_USED if samples.get(name)), None)
    return sum(one.value for one in used) / len(used) if used else None


def prefix_tokens(samples: Mapping[str, Sequence[Sample]]) -> tuple[int | None, int | None]:
    """Return the tokens looked up in the cache of prefixes, and those of them that it had."""
    hits, asked = total(samples, PREFIX_HITS), total(samples, PREFIX_ASKED)
    fed = total(samples, (LLAMA_FED,))
    if asked is None and hits is not None and fed is not None:
        asked = hits + fed
    return asked, hits
