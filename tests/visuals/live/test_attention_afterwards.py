"""Attention of runs that are over: from memory, from their file, or computed from their tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference.process.messages import (
    Attended,
    CaptureAttention,
    EngineDied,
    Recapture,
    RecaptureEnded,
    RunEnded,
)
from inference.records.attention import AttentionChoice, AttentionMap
from inference.records.options import BatchPlan, CacheKind
from inference.records.run import RunTrace
from inference.records.status import RunState
from inference.runs.known_tokens import RECAPTURED, UNQUANTISED
from inference.runs.packed_attention import packed_together, unpacked
from inference.runs.run_file import read_bytes, to_json
from tests.builders import DEFAULT_LOAD, TINY_DEVICE, model_ready
from tests.visuals.live_doubles import FIRST, CapturedHub
from visuals.live import attention_requests, attention_words
from visuals.live.live_run import LiveRun

OTHER = AttentionChoice(layer=0)
STEPS = 3  # a prompt of five tokens and two decode steps: seven tokens were fed


class AfterRun(CapturedHub):
    """A hub with runs that are over."""

    def finished(self, choice: AttentionChoice = FIRST, *, captured: int = STEPS) -> LiveRun:
        """Return a run that is over, of which the first steps were captured."""
        run = self.begin_captured(choice)
        for index, letter in enumerate("abc"):
            self.step(run, index, letter)
            if index < captured:
                self.attended(run, choice, index)
        self.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))
        return run

    def from_file(self, *choices: AttentionChoice, cache: CacheKind = CacheKind.DYNAMIC) -> LiveRun:
        """Return a run as another program would open it, with these choices in its file."""
        trace = self.trace(*choices)
        return self.hub.adopt(replace(trace, info=replace(trace.info, cache=cache)))

    def trace(self, *choices: AttentionChoice) -> RunTrace:
        elsewhere = AfterRun()
        run = elsewhere.finished()
        trace = elsewhere.hub.snapshot(run)
        assert trace is not None
        captures = [
            (choice, [elsewhere.attended(run, choice, step) for step in range(STEPS)], "")
            for choice in choices
        ]
        return replace(trace, attention=packed_together(captures))

    def wishes(self) -> list[Recapture]:
        return [one for one in self.engine.commands if isinstance(one, Recapture)]

    def computed(self, wish: Recapture, steps: int = STEPS) -> list[AttentionMap]:
        """Let the engine send the first maps of what it was asked for."""
        maps: list[AttentionMap] = []
        for step in range(steps):
            maps.append(
                AttentionMap(
                    choice=wish.choice,
                    step_index=step,
                    query_start=step and 4 + step,
                    query_tokens=1 if step else 5,
                    kv_tokens=5 + step,
                    weights=np.full((1, 1 if step else 5, 5 + step), 0.1, dtype=np.float32),
                )
            )
            self.engine.reply(Attended(run_id=wish.run_id, step_index=step, attention=maps[-1]))
        return maps


@pytest.fixture
def under_test() -> AfterRun:
    return AfterRun()


def test_what_was_captured_is_shown_after_the_run(under_test: AfterRun) -> None:
    run = under_test.finished()

    captured = under_test.hub.attention(run)

    assert (captured.choice, captured.notice, captured.note) == (FIRST, "", "")
    assert [one.step_index for one in captured.maps] == [0, 1, 2]


def test_another_layer_is_computed_from_the_tokens_that_were_fed(under_test: AfterRun) -> None:
    run = under_test.finished()

    under_test.hub.capture(run, OTHER)
    waiting = under_test.hub.attention(run)
    [wish] = under_test.wishes()
    first = under_test.computed(wish, 1)
    coming = under_test.hub.attention(run)
    maps = under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))
    captured = under_test.hub.attention(run)

    trace = under_test.hub.snapshot(run)
    assert trace is not None
    assert wish.tokens.prompt_blocks == (5,)
    assert wish.tokens.ids == (*trace.requests[0].prompt_ids, *trace.outputs[0].token_ids[:-1])
    assert wish.tokens.output_ids == trace.outputs[0].token_ids
    assert (waiting.choice, waiting.maps) == (OTHER, ())
    assert waiting.note == attention_words.computing(OTHER)
    assert (coming.choice, coming.maps) == (OTHER, tuple(first))
    assert (captured.choice, captured.maps) == (OTHER, tuple(maps))
    assert (captured.notice, captured.note) == ("", RECAPTURED)


def test_a_picture_never_stands_under_another_choice(under_test: AfterRun) -> None:
    """A head picked after the run used to keep the prompt's rows of one head and drop the rest."""
    run = under_test.finished()

    for choice in (OTHER, AttentionChoice(layer=1, head=2), FIRST, OTHER):
        under_test.hub.capture(run, choice)
        captured = under_test.hub.attention(run)
        assert captured.choice == choice
        assert {one.choice for one in captured.maps} <= {choice}


def test_back_to_what_is_there_asks_the_engine_for_nothing(under_test: AfterRun) -> None:
    run = under_test.finished()
    before = under_test.hub.attention(run).maps
    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    maps = under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))

    under_test.hub.capture(run, FIRST)
    first = under_test.hub.attention(run)
    under_test.hub.capture(run, OTHER)
    other = under_test.hub.attention(run)

    assert (first.maps, first.note) == (before, "")
    assert (other.maps, other.note) == (tuple(maps), RECAPTURED)
    assert under_test.wishes() == [wish]


def test_rows_that_were_missed_during_the_run_are_computed(under_test: AfterRun) -> None:
    run = under_test.finished(captured=1)
    under_test.hub.capture(run, OTHER)

    under_test.hub.capture(run, FIRST)

    assert [wish.choice for wish in under_test.wishes()][-1] == FIRST


def test_of_all_heads_each_and_their_mean_are_there(under_test: AfterRun) -> None:
    every = AttentionChoice(layer=1, is_all_heads=True)
    run = under_test.finished(every, captured=0)
    weights = np.arange(28, dtype=np.float32).reshape(4, 7, 1) / 28
    seen = AttentionMap(
        choice=every, heads=(0, 1, 2, 3), query_tokens=7, kv_tokens=1, weights=weights
    )
    under_test.hub.capture(run, OTHER)
    under_test.hub.capture(run, every)
    wish = under_test.wishes()[-1]
    under_test.engine.reply(Attended(run_id=run.run_id, step_index=0, attention=seen))
    under_test.engine.reply(RecaptureEnded(number=wish.number))
    asked = len(under_test.wishes())

    under_test.hub.capture(run, AttentionChoice(layer=1, head=2))
    [own] = under_test.hub.attention(run).maps
    under_test.hub.capture(run, AttentionChoice(layer=1))
    [mean] = under_test.hub.attention(run).maps

    assert own.heads == (2,)
    assert own.weights is not None
    assert np.array_equal(own.weights, weights[2:3])
    assert mean.heads == ()
    assert mean.weights is not None
    assert np.allclose(mean.weights[0], weights.mean(axis=0))
    assert len(under_test.wishes()) == asked


def test_a_run_goes_first_and_what_was_computed_goes_on_after_it(under_test: AfterRun) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    under_test.computed(wish, 1)
    following = under_test.begin_captured()

    under_test.engine.reply(RecaptureEnded(number=wish.number, is_interrupted=True))
    while_it_runs = under_test.wishes()
    under_test.engine.reply(RunEnded(run_id=following.run_id, state=RunState.DONE))
    again = under_test.wishes()
    maps = under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))

    assert (while_it_runs, again) == ([wish], [wish, wish])
    assert under_test.hub.attention(run).maps == tuple(maps)


def test_a_wish_during_a_run_waits_for_its_end(under_test: AfterRun) -> None:
    run = under_test.finished()
    following = under_test.begin_captured()

    under_test.hub.capture(run, OTHER)
    before = under_test.wishes()
    under_test.engine.reply(RunEnded(run_id=following.run_id, state=RunState.DONE))

    assert (before, len(under_test.wishes())) == ([], 1)


def test_a_newer_wish_takes_the_place_of_the_one_that_is_computed(under_test: AfterRun) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)
    under_test.hub.capture(run, AttentionChoice(layer=0, head=1))
    first, second = under_test.wishes()

    under_test.engine.reply(RecaptureEnded(number=first.number, is_interrupted=True))
    maps = under_test.computed(second)
    under_test.engine.reply(RecaptureEnded(number=second.number))

    assert under_test.wishes() == [first, second]
    assert under_test.hub.attention(run).maps == tuple(maps)


def test_other_runs_wait_for_their_turn(under_test: AfterRun) -> None:
    runs = [under_test.finished(), under_test.finished()]
    for run in runs:
        under_test.hub.capture(run, OTHER)
    [first] = under_test.wishes()

    under_test.engine.reply(RecaptureEnded(number=first.number))

    assert [wish.run_id for wish in under_test.wishes()] == [run.run_id for run in runs]


def test_what_fails_gives_way_to_what_was_shown_and_says_why(under_test: AfterRun) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    under_test.computed(wish, 1)

    under_test.engine.reply(RecaptureEnded(number=wish.number, sentence="out of memory"))

    captured = under_test.hub.attention(run)
    assert (captured.choice, len(captured.maps)) == (FIRST, STEPS)
    assert captured.notice == "Layer 0 cannot be shown: out of memory."
    assert captured.note == ""


def test_an_engine_that_dies_leaves_nothing_waiting(under_test: AfterRun) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)

    under_test.engine.reply(EngineDied(exit_code=-9))

    captured = under_test.hub.attention(run)
    assert captured.choice == FIRST
    assert "engine process ended" in captured.notice


def test_an_exact_query_is_asked_of_the_engine_while_it_remembers_the_run(
    under_test: AfterRun,
) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)
    under_test.hub.capture(run, OTHER, 3)
    [wish] = under_test.wishes()
    while_computed = under_test.captures()
    under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))
    under_test.hub.capture(run, OTHER, 3)
    under_test.finished()
    under_test.hub.capture(run, OTHER, 4)

    assert while_computed == []
    assert under_test.captures() == [CaptureAttention(run_id=run.run_id, choice=OTHER, query=3)]


def test_a_run_whose_capture_was_off_or_shared_rows_can_be_computed(under_test: AfterRun) -> None:
    run = under_test.begin_batch(BatchPlan(slots=1))
    during = under_test.hub.attention(run).notice
    under_test.step(run, 0, "a")
    under_test.engine.reply(RunEnded(run_id=run.run_id, state=RunState.DONE))

    under_test.hub.capture(run, FIRST)

    assert during == attention_words.SHARED_ROWS
    assert [wish.choice for wish in under_test.wishes()] == [FIRST]
    assert under_test.hub.attention(run).notice == ""


def test_a_run_file_keeps_what_was_captured_that_shown_first(under_test: AfterRun) -> None:
    run = under_test.finished()
    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))

    whole = under_test.hub.whole(run)

    assert whole is not None
    assert [(one.choice, one.note) for one in whole.attention] == [(OTHER, RECAPTURED), (FIRST, "")]
    assert len(unpacked(whole.attention[1])) == STEPS
    assert read_bytes(to_json(whole).encode()) == (whole,)


def test_a_run_from_a_file_shows_what_it_keeps(under_test: AfterRun) -> None:
    """Weights used to stay in the memory of the page that made the run."""
    run = under_test.from_file(OTHER, FIRST)

    shown = under_test.hub.attention(run)
    under_test.hub.capture(run, FIRST)
    other = under_test.hub.attention(run)

    assert (shown.choice, [one.step_index for one in shown.maps]) == (OTHER, [0, 1, 2])
    assert (other.choice, len(other.maps), other.notice) == (FIRST, STEPS, "")


def test_a_file_says_how_its_weights_were_captured(under_test: AfterRun) -> None:
    trace = under_test.trace(FIRST)
    noted = replace(trace.attention[0], note=RECAPTURED)
    run = under_test.hub.adopt(replace(trace, attention=(noted,)))

    assert under_test.hub.attention(run).note == RECAPTURED


def test_a_run_that_plays_again_shows_as_many_rows_as_it_has_played(under_test: AfterRun) -> None:
    run = under_test.hub.replay(under_test.trace(FIRST))

    counts = [len(under_test.hub.attention(run).maps)]
    for _ in range(STEPS):
        under_test.time_s += 1.0
        counts.append(len(under_test.hub.attention(run).maps))

    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] == STEPS


def test_from_the_start_again_what_was_computed_of_a_replay_is_still_there(
    under_test: AfterRun,
) -> None:
    under_test.load()
    trace = under_test.trace(FIRST)
    run = under_test.hub.replay(trace)
    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    maps = under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))

    again = under_test.hub.replay(trace)
    under_test.hub.attention(again)
    under_test.time_s += 60

    captured = under_test.hub.attention(again)
    assert (captured.choice, captured.maps) == (OTHER, tuple(maps))


def test_a_file_without_a_model_says_why_another_layer_cannot_be_shown(
    under_test: AfterRun,
) -> None:
    run = under_test.from_file(FIRST)

    under_test.hub.capture(run, OTHER)

    captured = under_test.hub.attention(run)
    assert captured.choice == FIRST
    assert len(captured.maps) == STEPS
    assert captured.notice.startswith("Layer 0 cannot be shown: it was not captured, and no model")


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        (replace(model_ready(), model_id="another"), "another in float32 is loaded"),
        (
            replace(model_ready(), device=replace(TINY_DEVICE, dtype="bfloat16")),
            "tiny in bfloat16 is loaded",
        ),
        (
            replace(model_ready(), shape=replace(model_ready().shape, weight_bytes=9)),
            "has other sizes",
        ),
    ],
)
def test_another_model_is_not_asked_for_the_weights_of_a_run(
    under_test: AfterRun, ready: object, said: str
) -> None:
    under_test.hub.preload(DEFAULT_LOAD)
    under_test.engine.reply(ready)  # pyright: ignore[reportArgumentType]  a ModelReady
    run = under_test.from_file(FIRST)

    under_test.hub.capture(run, OTHER)

    assert said in under_test.hub.attention(run).notice
    assert under_test.wishes() == []


def test_a_file_whose_model_is_loaded_is_computed_and_says_what_differs(
    under_test: AfterRun,
) -> None:
    under_test.load()
    run = under_test.from_file(cache=CacheKind.QUANTISED)

    under_test.hub.capture(run, OTHER)
    [wish] = under_test.wishes()
    under_test.computed(wish)
    under_test.engine.reply(RecaptureEnded(number=wish.number))

    assert under_test.hub.attention(run).note == UNQUANTISED
    assert wish.tokens.logprobs == (-0.5,)


def test_damaged_weights_of_a_file_are_said_and_not_drawn(under_test: AfterRun) -> None:
    trace = under_test.trace(FIRST)
    broken = replace(trace.attention[0], body="bm90IHpsaWI=")
    run = under_test.hub.adopt(replace(trace, attention=(broken,)))

    captured = under_test.hub.attention(run)

    assert captured.maps == ()
    assert "damaged" in captured.notice


def test_only_the_newest_runs_keep_their_maps_in_memory(under_test: AfterRun) -> None:
    runs = [under_test.finished() for _ in range(attention_requests.KEPT_MAPS + 1)]

    kept = [len(under_test.hub.attention(run).maps) for run in reversed(runs)]

    assert kept == [STEPS] * attention_requests.KEPT_MAPS + [0]
