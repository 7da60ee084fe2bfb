"""Readings of an engine to rates, shares and ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from inference.figures.serving import Range, engine_rates, latency_range, since
from inference.records.serving import Buckets, EngineReading, EngineRow, Latency

BEGIN = datetime(2026, 12, 1, tzinfo=UTC)


def reading(at_s: float, **figures: int) -> EngineReading:
    return EngineReading(at=BEGIN + timedelta(seconds=at_s), whole=EngineRow(**figures))


def ttft(*counts: int) -> EngineRow:
    bounds = (0.04, 0.06, inf)
    return EngineRow(
        latencies=(Buckets(latency=Latency.TTFT, at_most=tuple(zip(bounds, counts, strict=True))),)
    )


def test_rates_are_growth_by_the_time_between_readings() -> None:
    readings = (
        reading(0, prompt_tokens=100, output_tokens=10, drafted_tokens=0, accepted_tokens=0),
        reading(2, prompt_tokens=300, output_tokens=40, drafted_tokens=20, accepted_tokens=15),
    )

    [rates] = engine_rates(readings)

    assert (rates.prompt_tokens_per_s, rates.output_tokens_per_s) == (100.0, 15.0)
    assert rates.accepted_ratio == 0.75
    assert rates.prefix_hit_ratio is None


def test_a_counter_that_fell_says_nothing() -> None:
    [rates] = engine_rates((reading(0, output_tokens=50), reading(1, output_tokens=3)))

    assert rates.output_tokens_per_s is None


def test_a_reading_that_failed_leaves_a_gap() -> None:
    failed = EngineReading(at=BEGIN + timedelta(seconds=1), whole=None)
    readings = (reading(0, output_tokens=1), failed, reading(2, output_tokens=9))

    assert engine_rates(readings) == ()
    assert len(since(readings, 10)) == 2
    assert since(readings, 1) == readings[2:]


@pytest.mark.parametrize(
    ("after", "ratio", "expected"),
    [
        ((1, 9, 10), 0.5, Range(low_s=0.04, high_s=0.06, requests=10)),
        ((6, 9, 10), 0.5, Range(low_s=0.0, high_s=0.04, requests=10)),
        ((1, 9, 10), 0.95, Range(low_s=0.06, high_s=None, requests=10)),
        ((0, 0, 0), 0.5, None),
    ],
)
def test_a_share_lies_between_two_bounds_and_at_no_point(
    after: tuple[int, int, int], ratio: float, expected: Range | None
) -> None:
    before = ttft(5, 5, 5)
    later = ttft(*(5 + count for count in after))

    assert latency_range(before, later, Latency.TTFT, ratio) == expected


def test_an_engine_that_was_started_anew_has_no_range() -> None:
    assert latency_range(ttft(5, 6, 7), ttft(1, 1, 1), Latency.TTFT, 0.5) is None
    assert latency_range(ttft(5, 6, 7), EngineRow(), Latency.TTFT, 0.5) is None
