"""What the engine process says when it is told to look, in this process, over a real pipe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path

import pytest

from inference.process.messages import (
    Attended,
    CaptureAttention,
    CaptureRefused,
    Command,
    EngineDied,
    Generate,
    Loading,
    LoadModel,
    ModelReady,
    Reply,
    RunEnded,
    RunStarted,
    Stepped,
)
from inference.process.worker import EngineHost
from inference.records.attention import AttentionChoice
from inference.records.options import AttentionKind, CacheKind, DecodeMode, Sampling
from inference.records.run import Request
from inference.records.status import RunState

PROMPT = (5, 9, 120, 77, 31)
END = EngineDied(exit_code=None)  # sent by the test itself, behind what a command made the host say
Tell = Callable[[Command], list[Reply]]


def request(request_id: str = "r0") -> Request:
    return Request(
        request_id=request_id,
        prompt_text="",
        prompt_ids=PROMPT,
        max_new_tokens=3,
        sampling=Sampling(),
    )


def generate(
    *,
    capture: AttentionChoice | None = None,
    chunk_tokens: int | None = None,
    cache: CacheKind = CacheKind.DYNAMIC,
) -> Generate:
    return Generate(
        run_id="run",
        requests=(request(),),
        seed=0,
        capture=capture,
        chunk_tokens=chunk_tokens,
        cache=cache,
    )


@pytest.fixture(scope="module")
def loaded(tiny_model_folder: Path) -> Iterator[tuple[Tell, list[Reply]]]:
    """Return a way to tell a host with a tiny model something, and what it said on loading."""
    ours, theirs = Pipe()
    replies: list[Reply] = []

    def listen() -> None:
        while True:
            try:
                replies.append(ours.recv())
            except (EOFError, OSError):
                return

    listener = threading.Thread(target=listen)
    listener.start()
    host = EngineHost(theirs)

    def tell(command: Command) -> list[Reply]:
        """Return what was said until the command was carried out."""
        before = len(replies)
        assert host.obey(command)
        theirs.send(END)
        while END not in replies[before:]:
            listener.join(0.01)
        return replies[before : replies.index(END, before)]

    assert host.obey(LoadModel(model=str(tiny_model_folder), dtype="float32", device="cpu"))
    tell(generate())
    yield tell, replies
    theirs.close()
    listener.join()
    ours.close()


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
