"""The newest choice and the entropy over the run, as data."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from inference.records.model import TokenPiece
from inference.records.options import Sampling
from inference.records.run import RunTrace
from inference.records.steps import Candidate, RowStep, StepEvent
from tests.builders import step
from tests.visuals.traces import empty_trace, trace_of
from visuals.charts.next_token import caption, entropy_by_step, entropy_rows, next_token_item

PIECES = {token: TokenPiece(token_id=token, raw=bytes([97 + token])) for token in range(4)}
DRAWN = Sampling(temperature=0.5, top_k=2)


def chosen(token_id: int | None, *, sampled: tuple[float | None, float | None]) -> StepEvent:
    event = step(3, 4, 0)
    row = replace(
        event.rows[0],
        token_id=token_id,
        logprob=log(0.01),
        candidates=(
            Candidate(token_id=0, logprob=log(0.6), sampled_logprob=sampled[0]),
            Candidate(token_id=1, logprob=log(0.2), sampled_logprob=sampled[1]),
        ),
        entropy_nats=log(8),
    )
    return replace(event, rows=(row,))


def item(event: StepEvent, sampling: Sampling) -> dict[str, object] | None:
    return next_token_item(event, sampling, event.rows[0], PIECES)


def with_entropy(trace: RunTrace, nats: float | None) -> RunTrace:
    def told(row: RowStep) -> RowStep:
        return replace(row, entropy_nats=nats)

    events = tuple(replace(one, rows=tuple(map(told, one.rows))) for one in trace.events)
    return replace(trace, events=events)


def test_greedy_candidates_have_one_probability() -> None:
    shown = item(chosen(0, sampled=(None, None)), Sampling())

    assert shown is not None
    assert shown["how"] == "greedy"
    assert shown["rows"] == [[0, "a", 0.6, None, True], [1, "b", 0.2, None, False]]


def test_drawn_candidates_have_one_before_and_one_after_and_a_ruled_out_one_has_zero() -> None:
    shown = item(chosen(0, sampled=(log(0.9), None)), DRAWN)

    assert shown is not None
    assert shown["how"] == "temperature 0.5, top-k 2"
    assert shown["rows"] == [[0, "a", 0.6, 0.9, True], [1, "b", 0.2, 0.0, False]]


def test_a_chosen_token_that_is_no_candidate_is_shown_too() -> None:
    shown = item(chosen(3, sampled=(log(0.9), log(0.1))), DRAWN)

    assert shown is not None
    assert isinstance(shown["rows"], list)
    assert shown["rows"][-1] == [3, "d", 0.01, None, True]


def test_a_chunk_that_chooses_nothing_has_no_next_token() -> None:
    assert item(chosen(None, sampled=(None, None)), Sampling()) is None


def test_the_caption_says_the_entropy_in_bit_and_what_it_means() -> None:
    row = chosen(0, sampled=(None, None)).rows[0]

    assert caption(row) == "Entropy 3.00 bit, as if among 8.0 equally likely tokens."
    many = caption(replace(row, entropy_nats=6.71 * log(2)))
    assert many == "Entropy 6.71 bit, as if among 105 equally likely tokens."
    assert caption(replace(row, entropy_nats=None)) == (
        "The entropy of this step was not recorded."
    )


def test_entropy_is_a_row_a_step_in_bit() -> None:
    trace = with_entropy(trace_of([b"a"], [b"b", b"c"]), log(2))

    assert [(row["k"], row["bits"]) for row in entropy_rows(trace.events, "r0")] == [
        (0, pytest.approx(1)),
        (1, pytest.approx(1)),
    ]
    assert entropy_rows(trace.events, "another") == []
    assert entropy_rows(with_entropy(trace, None).events, "r0") == []


@pytest.mark.parametrize("trace", [empty_trace(), trace_of([b"a"], [b"b"])], ids=["empty", "one"])
def test_the_chart_has_one_spec_whatever_its_rows(trace: RunTrace) -> None:
    spec = entropy_by_step(with_entropy(trace, log(2))).to_dict()
    rows = spec.pop("datasets")

    assert spec == entropy_by_step().to_dict()
    assert len(rows["entropy_by_step"]) == len(trace.events)
    assert spec["layer"][0]["encoding"]["y"]["title"] == "entropy, bit"
