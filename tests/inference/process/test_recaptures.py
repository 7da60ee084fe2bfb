"""The engine computes the attention of a run that is over, and leaves off for any command."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inference.engine.backend import TorchBackend
from inference.models.loading import load_model
from inference.process.messages import (
    Attended,
    CaptureAttention,
    Recapture,
    RecaptureEnded,
    Reply,
    Stepped,
)
from inference.process.recaptures import Recapturer
from inference.records.attention import AttentionChoice, KnownTokens
from tests.inference.process.host_under_test import PROMPT, Tell, generate

CHOICE = AttentionChoice(layer=1, is_all_heads=True)


def attended(replies: list[Reply]) -> list[Attended]:
    return [reply for reply in replies if isinstance(reply, Attended)]


def wish(replies: list[Reply], number: int = 1) -> Recapture:
    """Return the wish for a layer of the run that made these replies."""
    rows = [reply.event.rows[0] for reply in replies if isinstance(reply, Stepped)]
    ids = tuple(row.token_id for row in rows if row.token_id is not None)
    tokens = KnownTokens(
        prompt_blocks=(len(PROMPT),),
        ids=(*PROMPT, *ids[:-1]),
        output_ids=ids,
        logprobs=tuple(row.logprob for row in rows),
    )
    return Recapture(number=number, run_id="run", choice=CHOICE, tokens=tokens)


def test_the_maps_are_those_of_the_run(loaded: tuple[Tell, list[Reply]]) -> None:
    tell, _ = loaded
    during = tell(generate(capture=CHOICE))
    plain = tell(generate())

    after = tell(wish(plain, 7))

    ended = after[-1]
    assert ended == RecaptureEnded(number=7)
    pairs = list(zip(attended(during), attended(after), strict=True))
    assert len(pairs) == 3
    for one, other in pairs:
        assert one.step_index == other.step_index
        assert one.attention.weights is not None
        assert other.attention.weights is not None
        assert np.allclose(one.attention.weights, other.attention.weights, atol=1e-5)


def test_one_query_can_be_asked_for_exactly_until_another_run(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    tell, _ = loaded
    tell(wish(tell(generate())))

    [row] = attended(tell(CaptureAttention(run_id="run", choice=CHOICE, query=6)))
    other_choice = tell(CaptureAttention(run_id="run", choice=AttentionChoice(layer=0), query=6))
    tell(generate())
    after_another = tell(CaptureAttention(run_id="before", choice=CHOICE, query=6))

    assert (row.attention.query_start, row.attention.query_tokens, row.query) == (6, 1, 6)
    assert row.attention.choice == CHOICE
    assert attended(other_choice) == attended(after_another) == []


def test_other_weights_are_refused_with_a_sentence(loaded: tuple[Tell, list[Reply]]) -> None:
    tell, _ = loaded
    known = wish(tell(generate()))
    tokens = KnownTokens(
        prompt_blocks=known.tokens.prompt_blocks,
        ids=known.tokens.ids,
        output_ids=known.tokens.output_ids,
        logprobs=(-0.001, None, None),
    )

    replies = tell(Recapture(number=2, run_id="run", choice=CHOICE, tokens=tokens))

    [ended] = replies
    assert isinstance(ended, RecaptureEnded)
    assert "its weights are not those of the run" in ended.sentence


def test_it_leaves_off_before_the_next_block_when_a_command_waits(tiny_model_folder: Path) -> None:
    loaded = load_model(
        str(tiny_model_folder), dtype="float32", device="cpu", on_stage=lambda _stage: None
    )
    replies: list[Reply] = []
    answers = iter([False, True])
    recapturer = Recapturer(replies.append, lambda: next(answers))
    tokens = KnownTokens(prompt_blocks=(3, 2), ids=PROMPT)

    recapturer.carry_out(
        Recapture(number=4, run_id="run", choice=CHOICE, tokens=tokens), TorchBackend(loaded.model)
    )

    assert [reply.attention.query_tokens for reply in attended(replies)] == [3]
    assert replies[-1] == RecaptureEnded(number=4, is_interrupted=True)


def test_what_was_left_off_is_not_remembered(tiny_model_folder: Path) -> None:
    loaded = load_model(
        str(tiny_model_folder), dtype="float32", device="cpu", on_stage=lambda _stage: None
    )
    backend = TorchBackend(loaded.model)
    replies: list[Reply] = []
    answers = iter([False, True])
    recapturer = Recapturer(replies.append, lambda: next(answers))
    tokens = KnownTokens(prompt_blocks=(3, 2), ids=PROMPT)
    recapturer.carry_out(Recapture(number=4, run_id="run", choice=CHOICE, tokens=tokens), backend)
    replies.clear()

    recapturer.recall(CaptureAttention(run_id="run", choice=CHOICE, query=1), backend)

    assert replies == []
