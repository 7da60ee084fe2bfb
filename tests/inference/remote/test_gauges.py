"""Metrics pages as engines write them, old names and bad lines among them."""

from __future__ import annotations

import asyncio
from itertools import chain, repeat

import pytest

from inference.records.endpoints import EngineGauges
from inference.remote.address import endpoint_at
from inference.remote.connection import Wire
from inference.remote.gauges import falls_to_rest, gauges_in, read_gauges
from tests.inference.remote.metrics_pages import LLAMA_CPP, OLDER_VLLM, SGLANG, VLLM
from tests.inference.remote.scripted_server import Received, Script, ScriptedServer


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
