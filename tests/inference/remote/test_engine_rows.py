"""A row for each data-parallel engine, and one for all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf

import pytest

from inference.records.serving import Buckets, EngineRow, Latency
from inference.remote.engine_rows import reading_in
from tests.inference.remote.metrics_pages import LLAMA_CPP, OLDER_VLLM, SGLANG, VLLM, vllm_page

AT = datetime(2026, 12, 1, tzinfo=UTC)


def test_each_data_parallel_engine_has_a_row_and_the_sum_is_over_all() -> None:
    reading = reading_in(VLLM, AT)

    first, second = reading.engines
    assert (first.engine, first.running, first.kv_used_ratio, first.preemptions) == (
        "0",
        2,
        0.25,
        7,
    )
    assert (second.engine, second.running, second.waiting, second.preemptions) == (
        "1",
        3,
        None,
        None,
    )
    assert reading.whole is not None
    assert (reading.whole.running, reading.whole.waiting, reading.whole.kv_used_ratio) == (
        5,
        1,
        0.5,
    )


@pytest.mark.parametrize(
    ("page", "row"),
    [
        (
            SGLANG,
            EngineRow(
                running=4,
                waiting=0,
                kv_used_ratio=0.5,
                prefix_asked_tokens=60,
                prefix_hit_tokens=30,
                prompt_tokens=60,
            ),
        ),
        (
            LLAMA_CPP,
            EngineRow(
                running=1,
                waiting=0,
                prefix_asked_tokens=40,
                prefix_hit_tokens=10,
                prompt_tokens=30,
            ),
        ),
        (OLDER_VLLM, EngineRow(running=1, kv_used_ratio=0.5)),
        ("", EngineRow()),
    ],
    ids=["SGLang", "llama.cpp", "older vLLM", "nothing"],
)
def test_what_a_version_does_not_say_is_not_known(page: str, row: EngineRow) -> None:
    reading = reading_in(page, AT)

    assert reading.whole == row
    assert reading.engines == ()


def test_buckets_are_read_with_their_bounds_and_summed_over_engines() -> None:
    one = vllm_page(ttfts=(2, 5, 6))
    both = one + "\n".join(
        line.replace('engine="0"', 'engine="1"') for line in one.splitlines() if "_bucket" in line
    )

    whole = reading_in(both + "\n", AT).whole

    assert whole is not None
    assert whole.latencies == (
        Buckets(latency=Latency.TTFT, at_most=((0.04, 4), (0.06, 10), (inf, 12))),
    )


@pytest.mark.parametrize("ttfts", [(5, 2, 6), (1, 2, 1)])
def test_buckets_that_fall_are_not_known(ttfts: tuple[int, int, int]) -> None:
    whole = reading_in(vllm_page(ttfts=ttfts), AT).whole

    assert whole is not None
    assert whole.latencies == ()


def test_a_page_that_could_not_be_read_says_nothing() -> None:
    assert reading_in(None, AT).whole is None
