"""What a run is looked at: choices, what can still be had of them, and the maps that come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference.process.messages import Attended, LookAt, LookRefused, RunEnded, RunStarted
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import BatchPlan
from inference.records.status import RunState
from tests.builders import DEFAULT_LOAD, model_ready, order, run_info
from tests.visuals.batches import batch_trace
from tests.visuals.live.test_hub import HubUnderTest
from visuals.live import attention_requests
from visuals.live.live_run import LiveRun

FIRST = AttentionChoice(layer=1)


class LookedHub(HubUnderTest):
    """A hub whose runs are looked at."""

    def begin_looked(self, choice: AttentionChoice | None = None) -> LiveRun:
        if self.hub.engine_status().ready is None:
            self.hub.preload(DEFAULT_LOAD)
            self.engine.reply(model_ready())
        run = self.hub.submit(replace(order("hello"), is_looked_at=True, look=choice))
        self.engine.reply(RunStarted(info=run_info(run.run_id)))
        return run

    def begin_batch(
        self, plan: BatchPlan, *, gap_s: float = 0.0, is_looked_at: bool = True
    ) -> LiveRun:
        self.hub.preload(DEFAULT_LOAD)
        self.engine.reply(model_ready())
        arrivals_s = (0.0, gap_s, 2 * gap_s)
        wanted = replace(order("a"), prompts=("a", "b", "c"), arrivals_s=arrivals_s, plan=plan)
        run = self.hub.submit(replace(wanted, is_looked_at=is_looked_at))
        self.engine.reply(RunStarted(info=replace(run_info(run.run_id), plan=plan)))
        return run

    def attended(self, run: LiveRun, choice: AttentionChoice, step_index: int = 0) -> AttentionMap:
        seen = AttentionMap(
            choice=choice,
            step_index=step_index,
            query_start=step_index and 4 + step_index,
            query_tokens=1 if step_index else 5,
            kv_tokens=5 + step_index,
            weights=np.ones((1, 1 if step_index else 5, 5 + step_index), dtype=np.float32),
        )
        self.engine.reply(Attended(run_id=run.run_id, step_index=step_index, attention=seen))
        return seen

    def looks(self) -> list[LookAt]:
        return [command for command in self.engine.commands if isinstance(command, LookAt)]


@pytest.fixture
def under_test() -> LookedHub:
    return LookedHub()


def test_a_run_begins_with_the_middle_layer_and_the_mean(under_test: LookedHub) -> None:
    under_test.begin_looked()

    assert under_test.generates()[0].look == AttentionChoice(layer=1)


def test_a_choice_that_the_model_has_no_layer_for_gives_way_to_the_middle(
    under_test: LookedHub,
) -> None:
    under_test.begin_looked(AttentionChoice(layer=40, head=3))

    assert under_test.generates()[0].look == AttentionChoice(layer=1)


def test_a_run_that_is_not_looked_at_says_that_looking_is_off(under_test: LookedHub) -> None:
    run = under_test.begin()

    assert under_test.generates()[0].look is None
    assert under_test.hub.attention(run).notice == attention_requests.OFF


def test_maps_are_kept_in_the_order_of_their_steps(under_test: LookedHub) -> None:
    run = under_test.begin_looked()
    maps = [under_test.attended(run, FIRST, step) for step in range(3)]

    assert under_test.hub.attention(run).maps == tuple(maps)


def test_another_layer_is_looked_at_from_the_next_step_on(under_test: LookedHub) -> None:
    run = under_test.begin_looked()
    under_test.attended(run, FIRST)
    other = AttentionChoice(layer=0, head=2)

    under_test.hub.look_at(run, other)
    under_test.attended(run, FIRST, 1)  # was under way
    seen = under_test.attended(run, other, 2)

    looked = under_test.hub.attention(run)
    assert under_test.looks() == [LookAt(run_id=run.run_id, choice=other)]
    assert looked.choice == other
    assert looked.maps == (seen,)
    assert looked.notice == attention_requests.FROM_NEXT_STEP


def test_a_refused_choice_gives_way_to_the_one_before_with_a_sentence(
    under_test: LookedHub,
) -> None:
    run = under_test.begin_looked()
    under_test.attended(run, FIRST)
    under_test.hub.look_at(run, AttentionChoice(layer=9))

    under_test.engine.reply(
        LookRefused(run_id=run.run_id, sentence="there is no layer 9; this model has 0 to 1")
    )

    looked = under_test.hub.attention(run)
    assert looked.choice == FIRST
    assert looked.notice == "There is no layer 9; this model has 0 to 1."


def test_after_the_run_another_head_of_the_layer_can_be_had_but_no_other_layer(
    under_test: LookedHub,
) -> None:
    run = under_test.begin_looked()
    under_test.attended(run, FIRST)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    under_test.hub.look_at(run, AttentionChoice(layer=0))
    refused = under_test.hub.attention(run)
    under_test.hub.look_at(run, AttentionChoice(layer=1, head=3))
    seen = under_test.attended(run, AttentionChoice(layer=1, head=3))

    looked = under_test.hub.attention(run)
    assert (refused.choice, refused.notice) == (FIRST, attention_requests.OTHER_LAYER)
    assert looked.maps == (seen,)
    assert looked.notice == attention_requests.ONLY_PROMPT


def test_of_an_older_run_only_what_was_seen_is_left(under_test: LookedHub) -> None:
    run = under_test.begin_looked()
    seen = under_test.attended(run, FIRST)
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    under_test.begin_looked()

    under_test.hub.look_at(run, AttentionChoice(layer=1, head=0))
    under_test.hub.look_at(run, FIRST, 3)

    looked = under_test.hub.attention(run)
    assert under_test.looks() == []
    assert (looked.maps, looked.notice) == ((seen,), attention_requests.FOLLOWED)


def test_only_the_newest_runs_keep_their_maps(under_test: LookedHub) -> None:
    runs: list[LiveRun] = []
    for _ in range(attention_requests.KEPT_MAPS + 1):
        runs.append(under_test.begin_looked())
        under_test.attended(runs[-1], FIRST)
        under_test.engine.reply(RunEnded(run_id=runs[-1].run_id, state=RunState.DONE))

    kept = [len(under_test.hub.attention(run).maps) for run in runs]

    assert kept == [0] + [1] * attention_requests.KEPT_MAPS


def test_one_query_is_asked_of_the_engine_and_kept_apart(under_test: LookedHub) -> None:
    run = under_test.begin_looked()
    under_test.attended(run, FIRST)

    under_test.hub.look_at(run, FIRST, 2)
    row = AttentionMap(choice=FIRST, query_start=2, query_tokens=1, kv_tokens=5)
    under_test.engine.reply(Attended(run_id=run.run_id, step_index=0, attention=row, query=2))

    looked = under_test.hub.attention(run)
    assert under_test.looks() == [LookAt(run_id=run.run_id, choice=FIRST, query=2)]
    assert looked.exact_row is row
    assert len(looked.maps) == 1


def test_after_the_run_what_was_seen_while_it_went_can_be_had_again(under_test: LookedHub) -> None:
    run = under_test.begin_looked()
    maps = tuple(under_test.attended(run, FIRST, step) for step in range(3))
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
    under_test.hub.look_at(run, AttentionChoice(layer=1, head=3))
    under_test.attended(run, AttentionChoice(layer=1, head=3))

    under_test.hub.look_at(run, FIRST)

    looked = under_test.hub.attention(run)
    assert (looked.choice, looked.maps, looked.notice) == (FIRST, maps, "")


def test_after_a_run_with_all_heads_each_of_them_can_be_had_for_every_step(
    under_test: LookedHub,
) -> None:
    every = AttentionChoice(layer=1, is_all_heads=True)
    run = under_test.begin_looked(every)
    weights = np.arange(12, dtype=np.float32).reshape(4, 1, 3)
    seen = AttentionMap(
        choice=every, heads=(0, 1, 2, 3), query_tokens=1, kv_tokens=3, weights=weights
    )
    under_test.engine.reply(Attended(run_id=run.run_id, step_index=0, attention=seen))
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    under_test.hub.look_at(run, AttentionChoice(layer=1, head=2))

    [own] = under_test.hub.attention(run).maps
    assert own.heads == (2,)
    assert own.weights is not None
    assert own.weights.tolist() == [[[6.0, 7.0, 8.0]]]
    assert under_test.looks() == []


@pytest.mark.parametrize(
    ("plan", "gap_s"), [(BatchPlan(slots=2), 0.0), (BatchPlan(), 0.7)], ids=["slots", "arrivals"]
)
def test_a_row_that_several_requests_take_in_turn_is_not_looked_at(
    under_test: LookedHub, plan: BatchPlan, gap_s: float
) -> None:
    """Their weights would lie over one another in one picture."""
    trace = batch_trace(plan, gap_s=gap_s)
    rows = [row for event in trace.events for row in event.rows]
    assert len({row.request_id for row in rows if row.slot == 0}) > 1

    run = under_test.begin_batch(plan, gap_s=gap_s)

    under_test.hub.look_at(run, AttentionChoice(layer=0))

    assert under_test.hub.attention(run).notice == attention_requests.SHARED_ROWS
    assert [look.choice for look in under_test.looks()] == [None]
    under_test.attended(run, FIRST)
    assert under_test.hub.attention(run).maps == ()


def test_a_shared_row_cannot_be_looked_at_either_where_looking_was_off(
    under_test: LookedHub,
) -> None:
    run = under_test.begin_batch(BatchPlan(slots=2), is_looked_at=False)

    under_test.hub.look_at(run, AttentionChoice(layer=0))

    looked = under_test.hub.attention(run)
    assert (looked.choice, looked.notice) == (None, attention_requests.SHARED_ROWS)
    assert under_test.looks() == []


def test_rows_that_requests_keep_are_looked_at(under_test: LookedHub) -> None:
    run = under_test.begin_batch(BatchPlan())

    assert under_test.hub.attention(run).choice == FIRST
    assert under_test.looks() == []
