"""What is captured of a run: choices, what of them is still possible, and the maps that come."""

from __future__ import annotations

import pytest

from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
)
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import BatchPlan
from tests.visuals.batches import batch_trace
from tests.visuals.live_doubles import FIRST, CapturedHub
from visuals.live import attention_words


@pytest.fixture
def under_test() -> CapturedHub:
    return CapturedHub()


def test_a_run_begins_with_the_middle_layer_and_the_mean(under_test: CapturedHub) -> None:
    under_test.begin_captured()

    assert under_test.generates()[0].capture == AttentionChoice(layer=1)


def test_a_choice_that_the_model_has_no_layer_for_gives_way_to_the_middle(
    under_test: CapturedHub,
) -> None:
    under_test.begin_captured(AttentionChoice(layer=40, head=3))

    assert under_test.generates()[0].capture == AttentionChoice(layer=1)


def test_a_run_that_is_not_captured_says_that_capturing_is_off(under_test: CapturedHub) -> None:
    run = under_test.begin()

    assert under_test.generates()[0].capture is None
    assert under_test.hub.attention(run).notice == attention_words.OFF


def test_maps_are_kept_in_the_order_of_their_steps(under_test: CapturedHub) -> None:
    run = under_test.begin_captured()
    maps = [under_test.attended(run, FIRST, step) for step in range(3)]

    assert under_test.hub.attention(run).maps == tuple(maps)


def test_another_layer_is_captured_from_the_next_step_on(under_test: CapturedHub) -> None:
    run = under_test.begin_captured()
    first = under_test.attended(run, FIRST)
    other = AttentionChoice(layer=0, head=2)

    under_test.hub.capture(run, other)
    late = under_test.attended(run, FIRST, 1)  # was under way
    seen = under_test.attended(run, other, 2)

    captured = under_test.hub.attention(run)
    assert under_test.captures() == [CaptureAttention(run_id=run.run_id, choice=other)]
    assert captured.choice == other
    assert captured.maps == (seen,)
    assert captured.notice == attention_words.FROM_NEXT_STEP
    under_test.hub.capture(run, FIRST)
    assert under_test.hub.attention(run).maps == (first, late)


def test_a_refused_choice_gives_way_to_the_one_before_with_a_sentence(
    under_test: CapturedHub,
) -> None:
    run = under_test.begin_captured()
    under_test.attended(run, FIRST)
    under_test.hub.capture(run, AttentionChoice(layer=9))

    under_test.engine.reply(
        CaptureRefused(run_id=run.run_id, sentence="there is no layer 9; this model has 0 to 1")
    )

    captured = under_test.hub.attention(run)
    assert captured.choice == FIRST
    assert captured.notice == "There is no layer 9; this model has 0 to 1."


def test_one_query_is_asked_of_the_engine_and_kept_apart(under_test: CapturedHub) -> None:
    run = under_test.begin_captured()
    under_test.attended(run, FIRST)

    under_test.hub.capture(run, FIRST, 2)
    row = AttentionMap(choice=FIRST, query_start=2, query_tokens=1, kv_tokens=5)
    under_test.engine.reply(Attended(run_id=run.run_id, step_index=0, attention=row, query=2))

    captured = under_test.hub.attention(run)
    assert under_test.captures() == [CaptureAttention(run_id=run.run_id, choice=FIRST, query=2)]
    assert captured.exact_row is row
    assert len(captured.maps) == 1


@pytest.mark.parametrize(
    ("plan", "gap_s"), [(BatchPlan(slots=2), 0.0), (BatchPlan(), 0.7)], ids=["slots", "arrivals"]
)
def test_a_row_that_several_requests_take_in_turn_is_not_captured(
    under_test: CapturedHub, plan: BatchPlan, gap_s: float
) -> None:
    """Their weights would lie over one another in one picture."""
    trace = batch_trace(plan, gap_s=gap_s)
    rows = [row for event in trace.events for row in event.rows]
    assert len({row.request_id for row in rows if row.slot == 0}) > 1

    run = under_test.begin_batch(plan, gap_s=gap_s)

    under_test.hub.capture(run, AttentionChoice(layer=0))

    assert under_test.hub.attention(run).notice == attention_words.SHARED_ROWS
    assert [capture.choice for capture in under_test.captures()] == [None]
    under_test.attended(run, FIRST)
    assert under_test.hub.attention(run).maps == ()


def test_a_shared_row_cannot_be_captured_either_where_capturing_was_off(
    under_test: CapturedHub,
) -> None:
    run = under_test.begin_batch(BatchPlan(slots=2), is_captured=False)

    under_test.hub.capture(run, AttentionChoice(layer=0))

    captured = under_test.hub.attention(run)
    assert (captured.choice, captured.notice) == (None, attention_words.SHARED_ROWS)
    assert under_test.captures() == []


def test_rows_that_requests_keep_are_captured(under_test: CapturedHub) -> None:
    run = under_test.begin_batch(BatchPlan())

    assert under_test.hub.attention(run).choice == FIRST
    assert under_test.captures() == []
