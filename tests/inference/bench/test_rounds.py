"""What bench makes of moments and rounds, on scripted clocks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inference.bench.disturbance import DisturbanceFigures, disturbance_targets
from inference.bench.llama_cpp import llama_rate
from inference.bench.report import BenchReport, LoadAverage, as_json
from inference.bench.rounds import (
    Spread,
    Target,
    alternate,
    rates,
    speed_ratio,
    spread_of,
    step_s,
)
from inference.bench.sections import (
    GENERATE,
    QUICK,
    BatchFigures,
    ContextFigures,
    SweepFigures,
    targets,
)
from inference.bench.tables import as_table, target_lines
from inference.commands.bench import check_arguments
from inference.records.errors import InputError


def spread(value: float) -> Spread:
    return Spread(median=value, low=value, high=value)


def test_a_step_is_the_median_of_those_after_the_warm_ones() -> None:
    assert step_s([0.0, 9.0, 10.0, 12.0, 13.0], warm=1) == 1.0


def test_a_round_without_a_step_is_refused() -> None:
    with pytest.raises(InputError, match="2 steps are too few to leave 2 out"):
        step_s([0.0, 1.0, 2.0], warm=2)


def test_subjects_take_turns_forwards_and_backwards() -> None:
    turns: list[str] = []

    def subject(name: str, seconds: list[float]) -> Callable[[], float]:
        def measured() -> float:
            turns.append(name)
            return seconds.pop(0)

        return measured

    found = alternate(
        {"ours": subject("ours", [1.0, 2.0]), "theirs": subject("theirs", [3.0, 4.0])}, rounds=2
    )

    assert turns == ["ours", "theirs", "theirs", "ours"]
    assert found == {"ours": (1.0, 2.0), "theirs": (3.0, 4.0)}


def test_a_ratio_is_taken_within_each_round() -> None:
    # The second round met a machine ten times as slow; both slowed down alike.
    assert speed_ratio([1.0, 10.0, 1.0], [2.0, 20.0, 2.0]) == spread(2.0)


def test_a_spread_is_the_median_between_the_quartiles() -> None:
    assert spread_of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(median=3.0, low=2.0, high=4.0)
    assert spread_of([7.0]) == spread(7.0)


def test_a_rate_is_the_amount_by_the_seconds() -> None:
    assert rates([0.5], 8) == spread(16.0)


@pytest.mark.parametrize(
    ("found", "is_at_most", "is_met"),
    [(2.0, False, True), (1.9, False, False), (2.0, True, True), (2.1, True, False)],
)
def test_a_target_is_met_by_the_median(*, found: float, is_at_most: bool, is_met: bool) -> None:
    target = Target(name="a", wanted=2.0, found=spread(found), is_at_most=is_at_most)

    assert target.is_met is is_met


def test_a_target_that_was_not_measured_is_neither_met_nor_missed() -> None:
    target = Target(name="a", wanted=2.0, found=None)

    assert target.is_met is None
    assert target_lines([target]) == ["a  not measured, wanted ≥ 2"]


def figures() -> tuple[list[ContextFigures], list[BatchFigures]]:
    short = ContextFigures(
        context=128,
        tokens_per_s={"engine": spread(40.0)},
        ratios={GENERATE: spread(3.6)},
        observed_ratio=spread(0.98),
        capture_ratio=spread(0.95),
        roof_ratio=spread(0.9),
    )
    eight = BatchFigures(
        rows=8,
        tokens_per_s=spread(200.0),
        plain_tokens_per_s=spread(100.0),
        ratio_to_one_row=spread(5.0),
    )
    return [short], [eight]


def test_targets_are_filled_from_what_was_measured() -> None:
    found = targets(*figures(), kept_bytes=3000.0)

    assert [(one.name, one.is_met) for one in found] == [
        ("decode ÷ generate(), 128 tokens", True),
        ("decode ÷ generate(), 4,096 tokens", None),
        ("share of the memory roof, 128 tokens", True),
        ("8 rows ÷ 1 row, all tokens/s", True),
        ("observed ÷ unobserved", True),
        ("one layer captured ÷ none, 128 tokens", True),
        ("bytes kept per step", False),
    ]


def test_llama_benchs_rate_is_that_of_generation() -> None:
    printed = [{"n_prompt": 64, "n_gen": 0, "avg_ts": 300.0}, {"n_gen": 32, "avg_ts": 29.7}]

    assert llama_rate(json.dumps(printed)) == 29.7


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"n_gen": 0}]', "error: no model"])
def test_output_without_a_rate_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no rate of generation"):
        llama_rate(text)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rounds": 0}, "0 rounds"),
        ({"gguf": Path("a.gguf")}, "give both"),
        ({"llama_bench": Path("/no/such"), "gguf": Path("/no/such")}, "there is no file"),
    ],
)
def test_arguments_that_cannot_be_measured_with_are_named(
    changes: dict[str, object], sentence: str
) -> None:
    given = {"rounds": None, "llama_bench": None, "gguf": None} | changes

    with pytest.raises(InputError, match=sentence):
        check_arguments(argparse.Namespace(**given))


def report_of() -> BenchReport:
    contexts, batches = figures()
    return BenchReport(
        measured_at="2026-01-01T00:00:00+00:00",
        machine="two cores",
        load_average=LoadAverage(before=(0.5, 0.0, 0.0), after=(2.0, 0.0, 0.0)),
        versions={"torch": "2"},
        model="tiny",
        dtype="float32",
        kernels="none",
        plan=QUICK,
        memory_roof_bytes_per_s=2e10,
        load_stages_s={"reading weights": 1.25},
        decode=tuple(contexts),
        batch=tuple(batches),
        sweep=(
            SweepFigures(
                rows=8, context=1024, step_s=0.07, least_s=0.0421, tokens_per_s=114.3, kv_bytes=1
            ),
        ),
        bytes_kept_per_step=900.0,
        disturbance=DisturbanceFigures(
            marked_beside=spread(0.98),
            marked_alone=spread(0.02),
            delay_ratio=spread(1.0),
            cost_ratio=spread(0.002),
        ),
        page=None,
        llama_cpp_tokens_per_s=29.7,
        targets=tuple(targets(contexts, batches, 900.0)),
        not_measured="frames",
    )


def test_the_json_has_every_figure_and_whether_each_target_is_met() -> None:
    report = report_of()

    values = json.loads(json.dumps(as_json(report)))

    assert values["load_average"] == {"before": [0.5, 0, 0], "after": [2, 0, 0]}
    assert values["decode"][0]["ratios"] == {GENERATE: {"median": 3.6, "low": 3.6, "high": 3.6}}
    assert values["sweep"][0]["least_s"] == 0.0421
    assert [target["is_met"] for target in values["targets"]] == [
        target.is_met for target in report.targets
    ]


def test_the_table_names_the_machine_and_its_load() -> None:
    text = as_table(report_of())

    assert text.startswith("tiny, float32, two cores, 2026-01-01")
    assert "load average 0.5 before, 2.0 after" in text
    assert "bytes kept per step" in text
    assert "8 rows of 1,024 tokens     70.0 ms     42.1 ms    114.3 tokens/s" in text
    assert "llama.cpp 29.7 tokens/s" in text
    assert "beside a busy loop on one core       0.98 (0.98 to 0.98)" in text


def test_steps_beside_a_busy_loop_must_be_marked_and_quiet_ones_not() -> None:
    found = disturbance_targets(report_of().disturbance)

    assert [one.is_met for one in found] == [True, True, True]
    assert [one.is_met for one in disturbance_targets(None)] == [None, None, None]


def test_a_step_whose_time_cannot_be_is_unknown_in_the_table() -> None:
    report = report_of()
    [one] = report.sweep
    wrong = replace(one, step_s=None, tokens_per_s=None, is_disturbed=True)

    text = as_table(replace(report, sweep=(wrong,), disturbance=None))

    assert "8 rows of 1,024 tokens     unknown     42.1 ms           unknown, disturbed" in text
    assert "not known here" in text
