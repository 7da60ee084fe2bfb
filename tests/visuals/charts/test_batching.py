"""The charts of a sweep as data: measured and counted side by side, and where the benefit ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from inference.counting.public_shapes import public_shape
from inference.records.batches import BatchSweep, BatchTiming
from inference.records.costs import Ceilings, Source
from tests.builders import TINY_DEVICE, TINY_SHAPE
from visuals.charts.batching import (
    BatchFacts,
    batch_bytes,
    batch_rates,
    batch_times,
    disturbed_sentence,
    gain_sentences,
    limit_sentences,
    sequence_rates,
)
from visuals.charts.theme import KV, WEIGHTS, Chart

LLAMA = public_shape("Llama-3.1-8B", "bfloat16")
H100 = Ceilings(flops_per_s=989.4e12, bytes_per_s=3.35e12, source=Source.DATASHEET, method="")
CHARTS = [batch_times, batch_rates, sequence_rates]
every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.__name__)


def timing(batch: int, context: int, median_s: float) -> BatchTiming:
    return BatchTiming(
        batch=batch,
        context_tokens=context,
        best_s=median_s,
        median_s=median_s,
        worst_s=median_s,
        repeats=3,
        used_bytes=1,
    )


SWEEP = BatchSweep(
    model_id="tiny",
    shape=LLAMA,
    device=TINY_DEVICE,
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
    points=(timing(1, 2048, 0.010), timing(4, 2048, 0.016), timing(1, 99, 0.008)),
    is_whole=True,
)
KNOWN = BatchFacts(
    shape=LLAMA,
    batches=(1, 4, 128),
    contexts=(2048, 8192),
    ceilings=H100,
    sweep=SWEEP,
    memory_bytes=80 * 2**30,
)


def datasets(chart: Chart) -> dict[str, list[dict[str, Any]]]:
    return chart.to_dict()["datasets"]


@every_chart
def test_measured_points_stand_beside_counted_lines(chart: Callable[[BatchFacts], Chart]) -> None:
    rows = datasets(chart(KNOWN))[chart.__name__]

    measured = [(r["batch"], r["context"]) for r in rows if r["source"] == "measured"]
    counted = [(r["batch"], r["context"]) for r in rows if r["source"] == "counted"]
    assert measured == [(1, "2,048"), (4, "2,048")]
    fitting = [(1, "2,048"), (4, "2,048"), (128, "2,048"), (1, "8,192"), (4, "8,192")]
    assert counted == fitting  # 128 rows of 8,192 tokens take more than this device has


def test_times_and_rates_are_of_the_same_step_times() -> None:
    rows = datasets(batch_times(KNOWN))["batch_times"]

    assert [(r["ms"], r["all_rate"], r["one_rate"]) for r in rows[:2]] == [
        (10.0, 100.0, 100.0),
        (16.0, 250.0, 62.5),
    ]


@every_chart
def test_axes_are_logarithmic_and_titled_with_their_units(
    chart: Callable[[BatchFacts], Chart],
) -> None:
    lines = chart(KNOWN).to_dict()["layer"][0]["encoding"]

    assert lines["x"]["scale"]["type"] == lines["y"]["scale"]["type"] == "log"
    assert lines["y"]["title"] in ("ms per step", "tokens/s, all rows", "tokens/s, each row")
    assert lines["strokeDash"]["scale"]["domain"] == ["measured", "counted"]


def test_the_batch_at_which_cache_overtakes_weights_is_marked_where_it_is_drawn() -> None:
    turns = datasets(batch_times(KNOWN))["batch_times_turns"]

    assert [(row["batch"], row["context"]) for row in turns] == [(56, "2,048"), (14, "8,192")]


def test_bytes_are_stacked_weights_and_cache_and_pale_where_they_do_not_fit() -> None:
    chart = batch_bytes(KNOWN, 8192)

    rows = datasets(chart)["batch_bytes"]
    assert [row["part"] for row in rows] == ["weights", "K/V"] * 3
    assert rows[5]["gib"] == 128 * 1.0  # 128 rows of a GiB each: 8,192 tokens of 131,072 bytes
    assert [row["fits"] for row in rows[::2]] == [True, True, False]
    colours = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert colours == {"domain": ["weights", "K/V"], "range": [WEIGHTS, KV]}


def test_where_the_benefit_ends_is_said_in_rows() -> None:
    sentences = limit_sentences(KNOWN)

    assert "compute-bound from **296 rows** on" in sentences[0]
    assert "K/V overtakes the weights from **56 rows** on; 260 rows fit" in sentences[1]


def test_the_gain_of_the_largest_batch_is_said_with_its_price() -> None:
    [sentence] = gain_sentences(SWEEP)

    assert (
        "from 1 to 4 rows, **2.5 times** the tokens/s (100\u00a0tok/s to 250\u00a0tok/s)"
        in sentence
    )
    assert "10.0\u00a0ms to 16.0\u00a0ms" in sentence


def test_a_gain_that_cannot_be_is_never_stated() -> None:
    """The page said: from 1 to 2 rows, 3.1 times the tokens/s."""
    points = (timing(1, 64, 0.145), timing(2, 64, 0.0927), timing(4, 64, 0.1))
    noisy = replace(SWEEP, points=points)

    impossible, gain = gain_sentences(noisy)

    assert impossible == (
        "Context 64: a step of 1 row was measured longer than one of more rows, which cannot be, "
        "so its time is **not known**. Measure again once the machine is idle."
    )
    assert gain.startswith("Context 64: from 2 to 4 rows, **1.9 times**")


def test_a_reading_that_cannot_be_is_drawn_as_its_spread_alone() -> None:
    points = (
        replace(timing(1, 64, 0.145), best_s=0.1, worst_s=0.2),
        replace(timing(2, 64, 0.0927), is_disturbed=True),
        timing(4, 64, 0.1),
    )
    known = BatchFacts(
        shape=LLAMA, batches=(1, 2, 4), contexts=(64,), sweep=replace(SWEEP, points=points)
    )

    first, second, third = datasets(batch_rates(known))["batch_rates"]

    assert (first["ms"], first["all_rate"], first["one_rate"]) == (None, None, None)
    assert (first["ms_low"], first["ms_high"]) == (100.0, 200.0)
    assert (first["all_rate_low"], first["all_rate_high"]) == (5.0, 10.0)
    assert first["note"] == "longer than with more rows, so not known"
    assert second["note"] == "disturbed by other programs"
    assert (third["note"], third["all_rate"]) == ("undisturbed", 40.0)


def test_points_that_stayed_disturbed_are_said() -> None:
    points = (replace(timing(1, 64, 0.1), is_disturbed=True), timing(2, 64, 0.1))

    assert disturbed_sentence(SWEEP) == ""
    assert disturbed_sentence(replace(SWEEP, points=points)).startswith("1 of 2 points was")


@every_chart
def test_without_roofs_there_are_measured_points_only(chart: Callable[[BatchFacts], Chart]) -> None:
    known = BatchFacts(shape=LLAMA, batches=(1, 4), contexts=(2048,), sweep=SWEEP)

    rows = datasets(chart(known))[chart.__name__]

    assert {row["source"] for row in rows} == {"measured"}
    assert limit_sentences(known) == ()


@every_chart
def test_a_shape_that_cannot_be_counted_has_an_empty_chart(
    chart: Callable[[BatchFacts], Chart],
) -> None:
    known = BatchFacts(shape=TINY_SHAPE, batches=(1,), contexts=(64,), ceilings=H100)

    assert datasets(chart(known))[chart.__name__] == []
    assert datasets(batch_bytes(known, 64))["batch_bytes"] == []
