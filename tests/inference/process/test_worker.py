"""What the engine process says when it is told to look, in this process, over a real pipe."""

from __future__ import annotations

import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel

from inference.models.loading import LoadedModel, load_model
from inference.process import worker
from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
    Loading,
    LoadModel,
    ModelReady,
    Reply,
    RunEnded,
    RunStarted,
    Stepped,
)
from inference.records.attention import AttentionChoice
from inference.records.options import AttentionKind, CacheKind, DecodeMode
from inference.records.status import RunState
from tests.inference.process.host_under_test import Tell, generate, host_with


def attended(replies: list[Reply]) -> list[Attended]:
    return [reply for reply in replies if isinstance(reply, Attended)]


def test_a_loaded_model_comes_with_the_caches_it_can_have(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    [ready] = [reply for reply in loaded[1] if isinstance(reply, ModelReady)]

    assert {option.kind: option.reason for option in ready.caches} == dict.fromkeys(CacheKind, "")


def test_a_loaded_model_comes_with_the_attention_it_can_have(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    [ready] = [reply for reply in loaded[1] if isinstance(reply, ModelReady)]

    refused = {option.kind for option in ready.attentions if option.reason}
    assert [option.kind for option in ready.attentions] == list(AttentionKind)
    assert refused == {AttentionKind.FLASH}


def test_each_step_is_followed_by_what_it_attended_to(loaded: tuple[Tell, list[Reply]]) -> None:
    replies = loaded[0](generate(capture=AttentionChoice(layer=1, head=2)))

    said = [reply for reply in replies if isinstance(reply, Stepped | Attended)]
    assert [type(reply) for reply in said] == [Stepped, Attended] * 3
    assert [reply.step_index for reply in attended(replies)] == [0, 1, 2]
    assert [reply.attention.heads for reply in attended(replies)] == [(2,)] * 3


def test_a_run_that_nobody_looks_at_sends_no_weights(loaded: tuple[Tell, list[Reply]]) -> None:
    loaded[0](generate(capture=AttentionChoice(layer=1)))

    replies = loaded[0](generate())

    assert attended(replies) == []


def test_another_head_of_the_prompt_is_shown_when_the_run_has_ended(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    loaded[0](generate(capture=AttentionChoice(layer=1, head=2)))

    [head] = attended(
        loaded[0](CaptureAttention(run_id="run", choice=AttentionChoice(layer=1, head=0)))
    )
    [row] = attended(
        loaded[0](CaptureAttention(run_id="run", choice=AttentionChoice(layer=1, head=0), query=3))
    )

    assert (head.attention.heads, head.query) == ((0,), None)
    assert (row.attention.query_start, row.attention.query_tokens, row.query) == (3, 1, 3)


def test_a_layer_that_is_not_there_is_refused_and_the_run_goes_on(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    replies = loaded[0](generate(capture=AttentionChoice(layer=7)))

    [refused] = [reply for reply in replies if isinstance(reply, CaptureRefused)]
    [ended] = [reply for reply in replies if isinstance(reply, RunEnded)]
    assert refused.sentence == "there is no layer 7; this model has layers 0 to 1"
    assert ended.state is RunState.DONE


def test_capturing_at_another_run_is_not_answered(loaded: tuple[Tell, list[Reply]]) -> None:
    assert (
        attended(loaded[0](CaptureAttention(run_id="other", choice=AttentionChoice(layer=0)))) == []
    )


def test_a_run_says_how_its_prompt_was_fed_and_its_cache_stored(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    replies = loaded[0](generate(chunk_tokens=2, cache=CacheKind.STATIC))

    [started] = [reply for reply in replies if isinstance(reply, RunStarted)]
    steps = [reply.event for reply in replies if isinstance(reply, Stepped)]
    assert (started.info.chunk_tokens, started.info.cache) == (2, CacheKind.STATIC)
    assert [step.query_tokens for step in steps] == [2, 2, 1, 1, 1]
    assert steps[0].cache.used_bytes < steps[0].cache.allocated_bytes


def test_a_chunk_without_a_token_ends_the_run_with_a_sentence(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    replies = loaded[0](generate(chunk_tokens=0))

    [ended] = [reply for reply in replies if isinstance(reply, RunEnded)]
    assert ended.state is RunState.FAILED
    assert ended.message.startswith("a prefill chunk of 0 tokens feeds nothing")


def test_a_run_that_cannot_be_decoded_as_asked_says_why_and_is_eager(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    replies = loaded[0](replace(generate(), decode=DecodeMode.GRAPH))

    [preparing] = [reply for reply in replies if isinstance(reply, Loading)]
    [started] = [reply for reply in replies if isinstance(reply, RunStarted)]
    steps = [reply.event for reply in replies if isinstance(reply, Stepped)]
    assert preparing.stage.stage == "recording the decode step"
    assert replies.index(preparing) < replies.index(started)
    assert started.info.decode is DecodeMode.EAGER
    assert started.info.decode_note == (
        "a CUDA graph needs an NVIDIA GPU, and this run is on the CPU"
    )
    assert [step.decode for step in steps] == [None, DecodeMode.EAGER, DecodeMode.EAGER]
    assert [step.host_s for step in steps] == [None] * 3


def test_a_loaded_model_comes_with_its_devices_and_ways_to_decode(
    loaded: tuple[Tell, list[Reply]],
) -> None:
    [ready] = [reply for reply in loaded[1] if isinstance(reply, ModelReady)]

    assert ready.devices[-1].name == "cpu"
    assert [option.mode for option in ready.decodes] == list(DecodeMode)
    assert ready.device_note.startswith("Runs on cpu (as asked) in float32 (as asked).")


def test_a_model_that_was_switched_from_is_let_go(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cycles through its modules' own ``forward`` were frozen with it, and never collected."""
    held: list[weakref.ref[PreTrainedModel]] = []
    gone_before: list[list[bool]] = []

    def load(*args: Any, **options: Any) -> LoadedModel:  # noqa: ANN401  passed on as they are
        gone_before.append([reference() is None for reference in held])
        loaded = load_model(*args, **options)
        # As accelerate's hooks do. Source: accelerate 1.15, hooks.py, add_hook_to_module.
        loaded.model.forward = partial(type(loaded.model).forward, loaded.model)
        held.append(weakref.ref(loaded.model))
        return loaded

    monkeypatch.setattr(worker, "load_model", load)
    with host_with(tiny_model_folder) as (tell, _said):
        tell(LoadModel(model=str(tiny_model_folder), dtype="float64", device="cpu"))

        assert gone_before == [[], [True]]  # both at a time may not fit
        assert [reference() is None for reference in held] == [True, False]
