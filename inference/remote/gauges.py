"""An engine's metrics page to the few figures that all engines have, whatever they call them.

Source:
    vLLM 0.32 ``v1/metrics/loggers.py``, with the names of versions before; SGLang 0.5.23
    ``observability/metrics_collector.py``; llama.cpp b11549; TGI ``docs/source/reference``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from time import perf_counter

from prometheus_client.parser import text_string_to_metric_families

from inference.records.endpoints import EngineGauges
from inference.remote.asking import WIRE_ERRORS
from inference.remote.complaints import GOOD
from inference.remote.connection import Wire, WireMarks
from inference.remote.identify import METRICS, MOST_BYTES, READ_LIMIT_S

HEADER = re.compile(r"#\s+(?:HELP|TYPE)\s+(\S+)")
SAMPLE = re.compile(r"([^\s{]+)")
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
SHARDS = ("tp_rank", "pp_rank")  # parts of one engine, each of which says the same
LARGEST = 2**53
POLL_S = 0.1
Samples = Mapping[str, Sequence[float]]


async def read_gauges(wire: Wire) -> EngineGauges | None:
    """Return what the metrics page says; None where there is none that can be read."""
    try:
        async with wire.exchange(METRICS, None, silence_s=READ_LIMIT_S, marks=WireMarks()) as reply:
            if reply.status != GOOD:
                return None
            page = await reply.first_bytes(MOST_BYTES)
    except WIRE_ERRORS:
        return None
    return gauges_in(page.decode("utf-8", "replace"))


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
    samples, unreadable = _samples(page)
    hits = _total(samples, PREFIX_HITS)
    asked = _total(samples, PREFIX_ASKED)
    if asked is None and hits is not None and LLAMA_FED in samples:
        asked = hits + round(sum(samples[LLAMA_FED]))
    used = next((samples[name] for name in KV_USED if name in samples), None)
    return EngineGauges(
        running=_total(samples, RUNNING),
        waiting=_total(samples, WAITING),
        kv_used_ratio=sum(used) / len(used) if used else None,
        prefix_asked_tokens=asked,
        prefix_hit_tokens=hits,
        preemptions=_total(samples, PREEMPTIONS),
        unreadable=unreadable,
    )


def _total(samples: Samples, names: Sequence[str]) -> int | None:
    """Return the sum over the engines under the first name that is there."""
    found = next((samples[name] for name in names if name in samples), None)
    return round(sum(found)) if found else None


def _samples(page: str) -> tuple[Samples, tuple[str, ...]]:
    """Return the values by name, and the names of the metrics that could not be read.

    The parser gives up at the first bad line, so it is given one metric at a time.
    """
    samples: dict[str, list[float]] = {}
    unreadable: list[str] = []
    for name, lines in _metrics(page):
        try:
            families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
        except ValueError:
            unreadable.append(name)
            continue
        for sample in (sample for family in families for sample in family.samples):
            is_first_shard = all(sample.labels.get(shard, "0") == "0" for shard in SHARDS)
            if is_first_shard and isfinite(sample.value) and 0 <= sample.value <= LARGEST:
                samples.setdefault(sample.name, []).append(sample.value)
    return samples, tuple(unreadable)


def _metrics(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each metric's name and lines; a line without a header before it stands alone."""
    name, lines = "", []
    for line in page.split("\n"):
        header = HEADER.match(line)
        match = header or (None if line.startswith("#") else SAMPLE.match(line))
        if match is None:
            continue
        found = match[1]
        is_same = found == name if header is not None else bool(name) and found.startswith(name)
        if not is_same:
            if lines:
                yield name, lines
            name, lines = found, []
        lines.append(line)
    if lines:
        yield name, lines
