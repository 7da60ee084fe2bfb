"""The list of kept runs: what tells runs apart, and what finds them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from inference.records.options import BatchPlan, CacheKind, DecodeMode, Policy, Sampling
from inference.records.status import RunState
from inference.runs.store_entries import RunEntry, entry_of
from tests.builders import run_info
from tests.visuals.traces import batch_of, trace_of
from visuals.charts.run_list import alike, group_text, matching, result_text, settings_text

NOVEMBER = datetime(2026, 11, 30, 16, 36, tzinfo=UTC)


def entry(**changed: object) -> RunEntry:
    trace = trace_of([b"why", b" so"], [b"be", b"cause", b"."])
    made = entry_of(replace(trace, info=run_info("one")), "one", 10)
    return replace(made, **{"started_at": NOVEMBER, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"cache": CacheKind.QUANTISED},
        {"chunk_tokens": 32},
        {"attention": "eager"},
        {"decode": DecodeMode.GRAPH},
        {"dtype": "bfloat16"},
        {"sampling": Sampling(temperature=0.7)},
        {"prompts": ("a", "b")},
        {"tokens_per_s": 12.3},
        {"ttft_s": 9.9},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_runs_that_differ_read_differently(changed: dict[str, object]) -> None:
    """Ten runs of one prompt under ten settings were ten identical rows."""
    plain, other = entry(), entry(**changed)

    assert (result_text(plain), settings_text(plain)) != (result_text(other), settings_text(other))


def test_a_batch_says_its_rows_and_how_they_were_run() -> None:
    trace = batch_of(trace_of([b"why"], [b"be", b"cause"]), 4)
    plan = BatchPlan(policy=Policy.CONTINUOUS, slots=2)
    made = entry_of(replace(trace, info=replace(run_info(), plan=plan)), "one", 10)

    assert "4 prompts in one batch, continuous, 2 at a time" in settings_text(made)
    assert "80.0\u00a0tok/s, all rows" in result_text(made)


@pytest.mark.parametrize(
    "words",
    [
        "November",
        "30 november 2026",
        "2026-11-30",
        "16:36",
        "batch",
        "quantised",
        "finished",
        "chunks of 32",
        "temperature 0.7",
        "tok/s",
        "why so",
        "SDPA",
    ],
)
def test_a_run_is_found_by_what_the_list_shows_of_it(words: str) -> None:
    """Dates, times, "batch" and "quantised" found none of 23 runs."""
    shown = entry(
        cache=CacheKind.QUANTISED,
        chunk_tokens=32,
        sampling=Sampling(temperature=0.7),
        prompts=("why so", "and how"),
    )

    assert matching([shown], words) == (shown,)
    assert matching([shown], f"{words} elsewhere") == ()


def test_repeats_stand_together_and_other_settings_apart() -> None:
    one, other = entry(tokens_per_s=20.0), entry(cache=CacheKind.STATIC)
    later = NOVEMBER.replace(hour=17)
    again = entry(key="two", started_at=later, tokens_per_s=30.0, state=RunState.STOPPED)
    tomorrow = entry(key="four", started_at=NOVEMBER.replace(month=12, day=1))

    groups = alike([again, other, one, tomorrow])

    assert [[run.key for run in group] for group in groups] == [["two", "one"], ["one"], ["four"]]
    assert group_text(groups[0]) == (
        "2 runs alike \u00b7 30 November 2026, 16:36 to 17:36 UTC \u00b7 "
        "20.0\u00a0tok/s to 30.0\u00a0tok/s"
    )


def test_a_named_run_stands_alone() -> None:
    assert len(alike([entry(), entry(key="two", name="mine"), entry(key="three")])) == 2
