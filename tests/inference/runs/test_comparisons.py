"""Runs side by side: repeats, spreads, and which differences mean something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.records.options import BatchPlan, Padding, Sampling
from inference.records.run import RunTrace
from inference.records.steps import Finish
from inference.runs.comparisons import (
    FigureSpread,
    difference,
    figure_spread,
    figures_of,
    subjects_of,
)
from inference.runs.row_bytes import kv_bytes_at_end
from tests.builders import KV_BYTES_PER_TOKEN, run_info
from tests.visuals.traces import batch_of, trace_of


def run(prompt: str, step_time_s: float = 0.1, *, run_id: str = "r", tokens: int = 4) -> RunTrace:
    outputs = [b"x", b"y", b"z", b"q"][:tokens]
    trace = trace_of([letter.encode() for letter in prompt], outputs, step_time_s=step_time_s)
    return replace(trace, info=run_info(run_id))


def test_runs_of_one_prompt_and_settings_are_repeats_of_one_subject() -> None:
    subjects = subjects_of([run("ab"), run("cd"), run("ab", run_id="again")])

    assert [(one.label, one.title, len(one.samples)) for one in subjects] == [
        ("A", "ab", 2),
        ("B", "cd", 1),
    ]


def test_a_subject_is_named_by_what_sets_it_apart() -> None:
    plain = run("ab")
    half = replace(
        plain, info=replace(plain.info, device=replace(plain.info.device, dtype="bfloat16"))
    )

    assert [one.title for one in subjects_of([plain, half])] == [
        "dtype float32",
        "dtype bfloat16",
    ]


def test_one_text_with_other_ids_is_another_subject() -> None:
    plain = run("ab")
    [request] = plain.requests
    templated = replace(plain, requests=(replace(request, prompt_ids=(7, *request.prompt_ids)),))

    subjects = subjects_of([plain, templated])

    assert [(one.label, one.title) for one in subjects] == [("A", "ab"), ("B", "ab")]


def test_what_a_greedy_run_ignores_sets_no_run_apart() -> None:
    plain = run("ab")
    [request] = plain.requests
    ignored = Sampling(temperature=0.0, top_k=5)
    other = replace(plain, requests=(replace(request, sampling=ignored),))

    assert [len(one.samples) for one in subjects_of([plain, other])] == [2]


def test_a_subject_says_how_it_drew_and_in_which_batch() -> None:
    plain = batch_of(run("ab"), 2)
    drawn = Sampling(temperature=0.7, top_k=40, top_p=0.9)
    requests = tuple(replace(one, sampling=drawn) for one in plain.requests)
    plan = BatchPlan(padding=Padding.RIGHT)
    other = replace(plain, requests=requests, info=replace(plain.info, plan=plan))

    titles = [one.title for one in subjects_of([plain, other])]

    sampling = "temperature 0.7, top-k 40, top-p 0.9"
    assert titles == [
        "greedy, in a batch of 2 of its copies",
        f"{sampling}, in a batch of 2 as row r0, static, padded on the right",
        f"{sampling}, in a batch of 2 as row r1, static, padded on the right",
    ]


def test_no_run_makes_no_subject() -> None:
    assert subjects_of([]) == ()


def test_kernels_are_named_in_few_words() -> None:
    own = "own kernels for steps of 1 to 16 rows: 30 fused layers, 256-bit vectors, 2 threads"
    plain = "the library's own: kernels are switched off"
    traces = [run("ab"), run("ab")]
    traces = [
        replace(trace, info=replace(trace.info, kernels=text))
        for trace, text in zip(traces, (own, plain), strict=True)
    ]

    assert [one.title for one in subjects_of(traces)] == [
        "30 fused layers",
        "kernels are switched off",
    ]


def test_copies_of_a_prompt_in_one_batch_are_one_subject_and_its_rate_counts_all_rows() -> None:
    alone, batch = subjects_of([run("ab", 0.1), batch_of(run("ab", 0.2), 4)])

    assert (alone.title, batch.title) == ("alone", "in a batch of 4 of its copies")
    assert figures_of(alone).batch_tokens_per_s.middle is None
    assert figures_of(batch).tokens_per_s.middle == pytest.approx(5.0)
    assert figures_of(batch).batch_tokens_per_s.middle == pytest.approx(20.0)


def test_figures_are_medians_and_ends_over_the_repeats() -> None:
    [subject] = subjects_of([run("ab", timing) for timing in (0.1, 0.2, 0.4)])

    figures = figures_of(subject)

    assert figures.tpot_s.middle == pytest.approx(0.2)
    assert figures.tpot_s.width == pytest.approx(0.3)
    assert figures.tokens_per_s.middle == pytest.approx(5.0)
    assert (figures.prompt_tokens, figures.kv_bytes) == (2, 5 * KV_BYTES_PER_TOKEN)
    assert figures.is_cold


def test_the_finish_is_the_records_own_and_else_the_state() -> None:
    cut = run("ab")
    *events, last = cut.events
    ended = replace(last, rows=(replace(last.rows[0], finish=Finish.EOS),))

    assert figures_of(subjects_of([cut])[0]).finish == "done"
    assert figures_of(subjects_of([replace(cut, events=(*events, ended))])[0]).finish == "eos"


def test_a_run_without_a_token_has_no_figures_and_no_error() -> None:
    figures = figures_of(subjects_of([run("ab", tokens=0)])[0])

    assert (
        figures.ttft_s == figures.tpot_s == FigureSpread(middle=None, low=None, high=None, count=0)
    )
    assert figures.kv_bytes is None


@pytest.mark.parametrize(
    ("first", "second", "is_meant"),
    [
        ((10.0, 11.0), (11.2, 12.0), True),
        ((10.0, 11.0), (10.5, 11.4), False),
        ((10.0,), (12.0,), None),
        ((10.0, 10.0), (12.0,), None),
    ],
    ids=["more than the spread", "less than the spread", "no repeats", "repeats of one only"],
)
def test_a_difference_means_something_when_it_is_more_than_the_spread(
    first: tuple[float, ...], second: tuple[float, ...], is_meant: bool | None
) -> None:
    found = difference(figure_spread(first), figure_spread(second))

    assert found is not None
    assert found[1] is is_meant
    assert difference(figure_spread([None]), figure_spread(second)) is None


def test_a_row_of_a_batch_has_the_bytes_that_its_cache_measured() -> None:
    """A quantised cache in a batch was counted from the model's shape, as if it were float32."""
    alone = quantised(run("ab"))
    together = quantised(batch_of(run("ab"), 2))

    figures = [figures_of(one) for one in subjects_of([alone, together])]

    assert [one.kv_bytes for one in figures] == [5 * KV_BYTES_PER_TOKEN // 4] * 2


def test_rows_of_unequal_length_share_a_cache_by_the_tokens_they_stored() -> None:
    trace = batch_of(run("ab"), 2)
    [*_, last] = trace.events
    one, other = last.rows
    longer = replace(other, context_tokens=3 * one.context_tokens)
    trace = replace(trace, events=(replace(last, rows=(one, longer)),))

    parts = [kv_bytes_at_end(trace, request.request_id) for request in trace.requests]

    used_bytes = last.cache.used_bytes
    assert parts == [used_bytes // 4, used_bytes * 3 // 4]


def test_a_row_that_has_ended_has_no_part_of_the_cache_any_more() -> None:
    trace = batch_of(run("ab"), 2)
    *before, last = trace.events
    ending = before[-1]
    ended = replace(ending.rows[0], finish=Finish.EOS)
    events = (*before[:-1], replace(ending, rows=(ended, ending.rows[1])))
    alone = replace(last, rows=last.rows[1:])
    trace = replace(trace, events=(*events, alone))

    assert kv_bytes_at_end(trace, "r0") == ending.cache.used_bytes // 2
    assert kv_bytes_at_end(trace, "r1") == last.cache.used_bytes


def quantised(trace: RunTrace) -> RunTrace:
    """Return the run with a cache that takes a quarter of what the shape says."""
    events = tuple(
        replace(event, cache=replace(event.cache, used_bytes=event.cache.used_bytes // 4))
        for event in trace.events
    )
    return replace(trace, events=events)
