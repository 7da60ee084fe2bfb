"""Metrics pages as engines write them, old names and bad lines among them."""

from __future__ import annotations

import asyncio
from itertools import chain, repeat

import pytest

from inference.records.endpoints import EngineGauges
from inference.remote.address import endpoint_at
from inference.remote.connection import Wire
from inference.remote.gauges import falls_to_rest, gauges_in, read_gauges
from tests.inference.remote.scripted_server import Received, Script, ScriptedServer

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# HELP vllm:num_requests_waiting_by_reason By reason.
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# HELP vllm:prefix_cache_queries_total Tokens looked up.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} 100.0
vllm:prefix_cache_queries_created{engine="0"} 1.7e+09
# HELP vllm:prefix_cache_hits_total Tokens found.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 40.0
# HELP vllm:num_preemptions_total Preemptions.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0"} 7.0
"""
SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 4.0
sglang:num_running_reqs{model_name="m",tp_rank="1"} 4.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 0.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m",tp_rank="0"} 0.5
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 60.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device"} 20.0
sglang:cached_tokens_total{cache_source="host"} 10.0
"""
LLAMA_CPP = """# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 30
# HELP llamacpp:prompt_tokens_cached_total Number of prompt tokens reused.
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 10
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
"""
OLDER_VLLM = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running 1.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc 0.5
"""


@pytest.mark.parametrize(
    ("page", "gauges"),
    [
        (
            VLLM,
            EngineGauges(
                running=5,
                waiting=1,
                kv_used_ratio=0.5,
                prefix_asked_tokens=100,
                prefix_hit_tokens=40,
                preemptions=7,
            ),
        ),
        (
            SGLANG,
            EngineGauges(
                running=4,
                waiting=0,
                kv_used_ratio=0.5,
                prefix_asked_tokens=60,
                prefix_hit_tokens=30,
            ),
        ),
        (
            LLAMA_CPP,
            EngineGauges(running=1, waiting=0, prefix_asked_tokens=40, prefix_hit_tokens=10),
        ),
        (OLDER_VLLM, EngineGauges(running=1, kv_used_ratio=0.5)),
        ("", EngineGauges()),
        ("<html>", EngineGauges(unreadable=("<html>",))),
    ],
    ids=["vLLM", "SGLang", "llama.cpp", "older vLLM", "nothing", "HTML"],
)
def test_each_engines_page_gives_the_figures_that_it_has(page: str, gauges: EngineGauges) -> None:
    assert gauges_in(page) == gauges


@pytest.mark.parametrize("bad", ["vllm:bad{a= 1", "vllm:bad x", "vllm:bad"])
def test_a_bad_line_costs_its_own_metric_only(bad: str) -> None:
    lines = VLLM.splitlines()
    page = "\n".join([*lines[:4], "# TYPE vllm:bad gauge", bad, *lines[4:]])

    gauges = gauges_in(page)

    assert gauges.unreadable == ("vllm:bad",)
    assert (gauges.running, gauges.waiting, gauges.preemptions) == (5, 1, 7)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300"])
def test_a_value_that_is_no_count_is_not_known(value: str) -> None:
    page = f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {value}\n"

    assert gauges_in(page).running is None


def rest(server: ScriptedServer, *counts: int) -> bool | None:
    """Return whether the engine is seen to rest, its running count going through these."""
    later = chain(counts, repeat(counts[-1]))

    def page(_request: Received) -> Script:
        return Script(
            (f"llamacpp:requests_processing {next(later)}\n".encode(),), kind="text/plain"
        )

    server.routes["/metrics"] = page

    async def run() -> bool | None:
        async with Wire(endpoint_at(server.address)) as wire:
            return await falls_to_rest(wire, limit_s=0.3)

    return asyncio.run(run())


def test_an_engine_that_leaves_a_request_is_seen_to(server: ScriptedServer) -> None:
    assert rest(server, 0) is True
    assert rest(server, 1, 1, 0) is True
    assert rest(server, 3, 2) is True
    assert rest(server, 1) is False


def test_an_engine_without_a_metrics_page_does_not_say(server: ScriptedServer) -> None:
    async def run() -> tuple[EngineGauges | None, bool | None]:
        async with Wire(endpoint_at(server.address)) as wire:
            return await read_gauges(wire), await falls_to_rest(wire, limit_s=0.3)

    assert asyncio.run(run()) == (None, None)
