"""Figures of a load on a clock written down; every number is worked by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from inference.figures.loads import Limits, Spread, load_figures
from inference.records.arrivals import (
    Channel,
    LoadPlan,
    RemoteRequest,
    RemoteRun,
    Spacing,
    Usage,
)
from inference.records.endpoints import EndpointInfo, EngineGauges, EngineKind
from inference.records.status import RunState
from inference.remote.chunks import Chunk
from tests.inference.remote.requests import recorded

pytestmark = pytest.mark.golden
CLOSED = LoadPlan(spacing=Spacing.CLOSED, concurrency=2, requests=2)
OPEN = LoadPlan(spacing=Spacing.CONSTANT, rate_per_s=2.0, requests=2)
LIMITS = Limits(ttft_s=0.6, tpot_s=0.5)


def answer(sent_s: float, *moments: float) -> RemoteRequest:
    """Return a request whose tokens came at these moments, planned at 0 and 8 of 9 cached."""
    text = (((Channel.ANSWER, "a"),),) * len(moments)
    chunks = [Chunk(texts=one, running_tokens=index + 1) for index, one in enumerate(text)]
    usage = Usage(prompt_tokens=9, output_tokens=len(moments), cached_tokens=8)
    end = Chunk(finish="stop", usage=usage, running_tokens=len(moments))
    reads = [(at, [chunk]) for at, chunk in zip(moments, chunks, strict=True)]
    return recorded(*reads, (moments[-1], [end]), sent_s=sent_s)


def run_of(plan: LoadPlan, *requests: RemoteRequest, lateness_s: float = 0.0) -> RemoteRun:
    return RemoteRun(
        run_id="l",
        endpoint=EndpointInfo(
            address="http://a", engine=EngineKind.VLLM, version="", models=(), offers=()
        ),
        started_at=datetime(2026, 12, 1, tzinfo=UTC),
        versions=(),
        requests=requests,
        load=plan,
        lateness_s=lateness_s,
    )


FIRST, SECOND = answer(0.5, 1.0, 1.25, 1.5), answer(1.5, 2.5, 3.5)


def test_rates_are_over_the_time_from_the_first_sent_to_the_last_ended() -> None:
    figures = load_figures(run_of(CLOSED, FIRST, SECOND), LIMITS)

    assert (figures.finished, figures.failed) == (2, 0)
    assert figures.finished_per_s == pytest.approx(2 / 3)
    assert figures.tokens_per_s == pytest.approx(5 / 3)
    assert figures.sent_per_s == pytest.approx(1.0)
    assert figures.ttft_s.p50 == pytest.approx(0.75)
    assert figures.tpot_s.p50 == pytest.approx(0.625)
    assert figures.gaps_s.p50 == pytest.approx(0.25)
    assert (figures.good, figures.good_per_s) == (1, pytest.approx(1 / 3))
    assert figures.cached_tokens == 16


def test_in_an_open_loop_waiting_here_is_in_ttft_and_stands_apart_too() -> None:
    """Waiting behind the client's own gate was not counted: 507 ms beside 3,330."""
    late = replace(SECOND, marks=replace(SECOND.marks, planned_s=0.5))

    figures = load_figures(run_of(OPEN, FIRST, late), LIMITS)

    assert figures.ttft_s.p50 == pytest.approx(1.5)  # of 1.0 and 2.0
    assert figures.wait_s.p50 == pytest.approx(0.75)  # of 0.5 and 1.0
    assert figures.wanted_per_s == 2.0
    assert figures.good == 0


def test_the_warm_up_is_in_no_figure() -> None:
    warm_up = replace(answer(0.0, 9.0, 99.0), is_warm_up=True)

    both = load_figures(run_of(CLOSED, warm_up, FIRST, SECOND), LIMITS)

    assert both == load_figures(run_of(CLOSED, FIRST, SECOND), LIMITS)


def test_requests_that_failed_are_counted_and_in_no_latency() -> None:
    failed = replace(answer(0.5, 30.0), state=RunState.FAILED)

    figures = load_figures(run_of(CLOSED, FIRST, failed), LIMITS)

    assert (figures.finished, figures.failed, figures.good) == (1, 1, 1)
    assert figures.ttft_s == Spread(p50=0.5, p95=0.5, p99=0.5)


def test_several_tokens_in_one_read_are_neither_good_nor_bad() -> None:
    two = Chunk(texts=((Channel.ANSWER, "ab"),), running_tokens=2, finish="length")
    at_once = recorded((1.0, [two]), sent_s=0.5)
    single = answer(0.5, 1.0)

    figures = load_figures(run_of(CLOSED, at_once, single), LIMITS)

    assert (figures.good, figures.undecided) == (1, 1)


def test_what_is_not_known_is_none_and_never_0() -> None:
    silent = recorded((1.0, [Chunk(texts=((Channel.ANSWER, "a"),)), Chunk(finish="stop")]))

    figures = load_figures(run_of(CLOSED, silent))
    nothing = load_figures(run_of(CLOSED))

    assert (figures.tokens_per_s, figures.cached_tokens, figures.good) == (None, None, None)
    assert figures.tpot_s == Spread(p50=None, p95=None, p99=None)
    assert (nothing.finished, nothing.finished_per_s, nothing.sent_per_s) == (0, None, None)


def test_prefix_hits_are_those_of_the_engines_own_counters_over_the_load() -> None:
    before = EngineGauges(prefix_asked_tokens=100, prefix_hit_tokens=10)
    after = EngineGauges(prefix_asked_tokens=180, prefix_hit_tokens=70)
    run = replace(run_of(CLOSED, FIRST), gauges_before=before, gauges_after=after)

    assert load_figures(run).prefix_hit_ratio == 0.75
    assert load_figures(replace(run, gauges_after=before)).prefix_hit_ratio is None
    assert load_figures(replace(run, gauges_after=EngineGauges())).prefix_hit_ratio is None
    assert (
        load_figures(replace(run, gauges_before=after, gauges_after=before)).prefix_hit_ratio
        is None
    )


def test_a_load_in_which_this_side_was_late_is_marked() -> None:
    assert load_figures(run_of(CLOSED, FIRST, lateness_s=0.02)).is_late
    assert not load_figures(run_of(CLOSED, FIRST, lateness_s=0.002)).is_late
