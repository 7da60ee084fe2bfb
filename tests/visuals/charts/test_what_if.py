"""What if, and where the bottleneck turns: counted figures and charts as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.counting.datasheets import device_ceilings, device_memory_bytes
from inference.counting.public_shapes import public_shape
from inference.counting.what_if import what_if
from inference.records.rooflines import SweepPoint, Workload
from tests.visuals.counted import COUNTED_SHAPE, ROOFS, TOKEN_SWEEP
from visuals.charts.crossover import (
    Crossover,
    crossover,
    disturbed_sentence,
    measured_sentences,
    token_sweep_rows,
)
from visuals.charts.roofs import sweep_chart
from visuals.charts.theme import Chart
from visuals.charts.what_if import (
    batch_rows,
    batch_times,
    results,
    roofs_text,
    turns,
    whatif_roofline,
)

H100 = device_ceilings("H100 SXM", "bfloat16")
LLAMA = public_shape("Llama-3.1-8B", "bfloat16")
ONE = Workload(batch=1, prompt_tokens=1024, context_tokens=2048)


def _data(chart: Chart) -> dict[str, list[dict[str, Any]]]:
    return chart.to_dict()["datasets"]


def test_the_figures_are_those_counted_and_say_which_roof_wins() -> None:
    answer = what_if(LLAMA, H100, ONE, device_memory_bytes("H100 SXM"))

    shown = {result.key: result for result in results(answer, ONE, device_memory_bytes("H100 SXM"))}

    assert shown["itl"].value == f"{answer.itl_s * 1e3:.2f}\u00a0ms"
    assert shown["itl"].note.startswith("memory-bound")
    assert shown["ttft"].note.startswith("compute-bound")
    assert shown["memory"].note == "fits in 80.0\u00a0GiB"


def test_rates_that_a_reader_typed_are_tagged_as_entered_and_as_nothing_else() -> None:
    """They carried the tag of a data sheet, which no vendor had written."""
    answer = what_if(LLAMA, device_ceilings("989e12:3.35e12", "bfloat16"), ONE)

    spec = whatif_roofline(answer).to_dict()

    data = spec["datasets"]
    assert {row["source"] for row in data["whatif_roofs"] + data["whatif_ridges"]} == {"entered"}
    assert "(entered)" in data["whatif_ridges"][0]["label"]
    [roofs] = [one for one in spec["layer"] if one["data"]["name"] == "whatif_roofs"]
    assert roofs["encoding"]["strokeDash"]["legend"]["values"] == ["entered"]
    assert "**entered**" in roofs_text(answer.ceilings)
    assert "datasheet" not in str(spec["datasets"]) + roofs_text(answer.ceilings)


def test_a_model_too_large_for_the_device_does_not_fit() -> None:
    shape = public_shape("Llama-3.1-70B", "bfloat16")
    answer = what_if(shape, H100, ONE, device_memory_bytes("H100 SXM"))

    notes = {result.key: result.note for result in results(answer, ONE, 80 << 30)}

    assert notes["memory"] == "does not fit in 80.0\u00a0GiB"


def test_the_sentences_say_where_limits_turn_or_that_they_do_not() -> None:
    short = Workload(batch=1, prompt_tokens=8, context_tokens=1)
    prompt, batch, kv = turns(what_if(LLAMA, H100, ONE, None))
    _, small_batch, _ = turns(what_if(LLAMA, H100, short, None))

    assert "compute-bound from **" in prompt
    assert "stays memory-bound" in batch
    assert "a batch of **" in small_batch
    assert "more K/V than weights from a batch of **" in kv


def test_both_counted_steps_stand_on_the_vendors_roof_which_is_tagged() -> None:
    answer = what_if(LLAMA, H100, ONE, None)

    data = _data(whatif_roofline(answer))

    assert {row["source"] for row in data["whatif_roofs"]} == {"datasheet"}
    decode = next(row for row in data["whatif"] if row["phase"] == "decode")
    assert decode["y"] == pytest.approx(decode["x"] * H100.bytes_per_s)
    assert [row["label"] for row in data["whatif_now"]] == [
        "prefill (counted)",
        "decode (counted)",
    ]
    assert "**datasheet**" in roofs_text(H100)


def test_weights_cost_the_same_at_any_batch_and_kv_goes_with_it() -> None:
    rows = batch_rows(LLAMA, H100, 2048)

    times = {(row["goes_to"], row["batch"]): row["ms"] for row in rows}
    assert times["weights", 1] == pytest.approx(times["weights", 1024], rel=0.01)
    assert times["K/V", 64] == pytest.approx(64 * times["K/V", 1], rel=1e-3)
    for batch in (1, 64, 1024):
        memory = times["weights", batch] + times["K/V", batch]
        expected = max(memory, times["computing", batch])
        assert times["step", batch] == pytest.approx(expected, rel=1e-3)


def test_the_lines_of_the_batch_chart_are_dashed_since_they_are_counted() -> None:
    [layer] = batch_times(LLAMA, H100, 2048).to_dict()["layer"]

    assert layer["mark"]["strokeDash"] == [5, 3]


def test_the_turn_is_counted_from_roofs_and_measured_from_step_times() -> None:
    known = Crossover(shape=COUNTED_SHAPE, ceilings=ROOFS, sweep=TOKEN_SWEEP)

    data = _data(crossover(known))

    assert known.measured_tokens == pytest.approx(0.08 * 512 / 1.6)
    assert {row["source"] for row in data["crossover"]} == {"measured", "counted"}
    labels = {row["source"]: row["label"] for row in data["crossover_at"]}
    assert labels["measured"] == "crossover at 26 (measured)"
    assert labels["counted"] == f"crossover at {known.counted_tokens} (counted)"
    assert [row["tokens"] for row in data["crossover_times"]] == [1, 8, 64, 512]


@pytest.mark.parametrize(
    ("known", "sources"),
    [
        (Crossover(shape=COUNTED_SHAPE), set()),
        (Crossover(shape=COUNTED_SHAPE, ceilings=ROOFS), {"counted"}),
        (Crossover(shape=COUNTED_SHAPE, sweep=TOKEN_SWEEP), {"measured"}),
    ],
    ids=["nothing", "roofs only", "step times only"],
)
def test_what_was_not_measured_is_not_drawn(known: Crossover, sources: set[str]) -> None:
    data = _data(crossover(known))

    assert {row["source"] for row in data["crossover"]} == sources
    assert {row["source"] for row in data["crossover_at"]} <= sources


def test_a_step_that_is_never_compute_bound_turns_nowhere() -> None:
    steep = replace(ROOFS, flops_per_s=1e15)

    assert Crossover(shape=COUNTED_SHAPE, ceilings=steep).counted_tokens is None


def test_each_size_of_a_sweep_is_drawn_and_the_best_of_all_is_the_roof() -> None:
    points = [
        SweepPoint(label=name, size=1, best=best, median=best / 2, worst=best / 4, repeats=7)
        for name, best in (("sum", 10e9), ("dot", 20e9))
    ]

    rows = _data(sweep_chart(points, "GB/s", "reads"))["sweep"]

    assert [(row["label"], row["best"], row["is_roof"]) for row in rows] == [
        ("sum", 10.0, 0.0),
        ("dot", 20.0, 1.0),
    ]


def test_text_and_chart_give_one_step_time_of_one_token() -> None:
    """The text gave the quickest timing and the chart the median: 19.6 ms beside 34."""
    [sentence] = measured_sentences(TOKEN_SWEEP)
    first = token_sweep_rows(TOKEN_SWEEP)[0]

    assert first["ms"] == 88.0
    assert "one-token step (88.0\u00a0ms)" in sentence
    assert "**Measured: 26 tokens** (between 17 and 38 by the spread of the timings)" in sentence


def test_a_crossover_between_wide_whiskers_is_not_known() -> None:
    points = tuple(replace(one, worst_s=one.best_s * 30) for one in TOKEN_SWEEP.points)
    wide = replace(TOKEN_SWEEP, points=points)

    assert measured_sentences(wide) == (
        "**Measured: not known**, since the timings leave a range of a factor of 900. Measure it "
        "again.",
    )
    facts = Crossover(shape=COUNTED_SHAPE, sweep=wide)
    assert _data(crossover(facts))["crossover_at"] == []


def test_points_of_a_sweep_that_are_not_sure_are_named() -> None:
    first, second, *rest = TOKEN_SWEEP.points
    slow = replace(first, median_s=0.1, worst_s=0.2)
    noisy = replace(TOKEN_SWEEP, points=(slow, replace(second, is_disturbed=True), *rest))

    assert [row["note"] for row in token_sweep_rows(noisy)] == [
        "longer than with more tokens, so not known",
        "disturbed by other programs",
        "undisturbed",
        "undisturbed",
    ]
    assert disturbed_sentence(noisy.points).startswith("1 of 4 points was disturbed")
