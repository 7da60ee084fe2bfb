"""llama.cpp's own server on the default model, watched as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.figures.arrivals import CountSource, answer_text, arrival_figures, token_counts
from inference.records.arrivals import ArrivalKind, RemoteAsk, RemoteRequest
from inference.records.endpoints import EngineKind, Extra
from inference.records.options import Sampling
from inference.records.status import RunState
from inference.remote.address import endpoint_at
from inference.remote.asking import ask
from inference.remote.connection import Wire
from inference.remote.gauges import falls_to_rest
from inference.remote.messages import message_for
from inference.remote.tries import taken_extras
from tests.inference.remote.real_engines import default_gguf, llama_server
from tests.inference.remote.requests import asked, found_at, new_recorder

EXTRAS = (Extra.USAGE, Extra.COUNTS, Extra.PROBABILITIES, Extra.PROGRESS)
SEA = RemoteAsk(
    model_id="m",
    prompt_text="Write one sentence about the sea.",
    max_new_tokens=16,
    sampling=Sampling(),
    seed=0,
)
LLAMA = EngineKind.LLAMA_CPP


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return default_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="module")
def address(gguf: Path) -> Iterator[str]:
    with llama_server(gguf) as listening:
        yield listening


def asked_here(address: str, wanted: RemoteAsk) -> RemoteRequest:
    return asked(address, engine=LLAMA, extras=EXTRAS, wanted=wanted, silence_s=60)


def test_it_is_recognised_and_gives_all_that_it_documents(address: str) -> None:
    info = found_at(address, is_tried=True)

    assert info.engine is LLAMA
    assert taken_extras(info) == (*EXTRAS, Extra.OWN_TIMES, Extra.METRICS)
    assert info.models[0].context_tokens


def test_a_chat_comes_token_by_token_with_ids_and_probabilities(address: str) -> None:
    request = asked_here(address, SEA)

    figures = arrival_figures(request)
    named = [token for one in request.arrivals for token in one.tokens]
    assert (request.state, request.message) == (RunState.DONE, "")
    assert figures.counts.source is CountSource.RUNNING
    assert figures.counts.total == SEA.max_new_tokens
    assert figures.counts.note == ""
    assert b"".join(token.raw for token in named).decode() == answer_text(request)
    assert all(token.token_id is not None and len(token.candidates) == 5 for token in named)
    assert request.arrivals[0].kind is ArrivalKind.PROGRESS
    assert request.times is not None
    assert figures.ttft_s is not None
    assert request.times.prefill_s is not None
    assert figures.ttft_s > request.times.prefill_s > 0


def test_a_prompt_that_it_knows_is_not_fed_again(address: str) -> None:
    wanted = replace(SEA, prompt_text="Name three rivers, please.", max_new_tokens=4)

    first = asked_here(address, wanted)
    again = asked_here(address, wanted)

    assert first.usage is not None
    assert again.usage is not None
    assert again.usage.prompt_tokens == first.usage.prompt_tokens
    assert (again.usage.cached_tokens or 0) > (first.usage.cached_tokens or 0)
    assert answer_text(again) == answer_text(first)


def test_two_slots_answer_at_the_same_time(address: str) -> None:
    wanted = [
        replace(SEA, prompt_text=text, max_new_tokens=32, is_raw=True)
        for text in ("One two three four", "Once upon a time")
    ]

    async def run() -> list[RemoteRequest]:
        recorders = [new_recorder(one) for one in wanted]
        async with Wire(endpoint_at(address)) as wire:
            await asyncio.gather(
                *(
                    ask(wire, message_for(one, LLAMA, EXTRAS), recorder)
                    for one, recorder in zip(wanted, recorders, strict=True)
                )
            )
        return [recorder.snapshot() for recorder in recorders]

    both = asyncio.run(run())

    assert [token_counts(one).total for one in both] == [32, 32]
    first, second = ([a.at_s for a in one.arrivals if a.raw] for one in both)
    assert first[0] < second[-1]
    assert second[0] < first[-1]


def test_tokens_of_a_split_character_are_counted_though_few_are_named(address: str) -> None:
    """Three tokens of one emoji come as one chunk that names the last of them only."""
    prompt = "\U0001f600\U0001f680" * 8
    request = asked_here(address, replace(SEA, prompt_text=prompt, is_raw=True))

    counts = token_counts(request)
    named = sum(len(one.tokens) for one in request.arrivals)
    assert not answer_text(request).isascii()
    assert counts.source is CountSource.RUNNING
    assert counts.total == sum(count or 0 for count in counts.per_arrival)
    assert counts.total is not None
    assert named < counts.total


def test_a_stop_is_seen_by_the_engine(address: str) -> None:
    wanted = replace(SEA, max_new_tokens=900, is_raw=True, prompt_text="The story of all seas.")
    recorder = new_recorder(wanted)

    async def run() -> None:
        async with Wire(endpoint_at(address)) as wire:
            message = message_for(wanted, LLAMA, EXTRAS)
            task = asyncio.create_task(ask(wire, message, recorder))
            while recorder.arrivals < 6:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await falls_to_rest(wire, limit_s=30)

    asyncio.run(run())

    assert recorder.snapshot().state is RunState.STOPPED


def test_drafted_tokens_come_together_and_are_counted(gguf: Path) -> None:
    """With speculation only the first token of a step has a probability."""
    prompt = "Repeat this ten times: " + "a b c d e f g h " * 10
    wanted = replace(SEA, prompt_text=prompt, max_new_tokens=48)

    with llama_server(gguf, "ngram_simple") as listening:
        request = asked_here(listening, wanted)

    figures = arrival_figures(request)
    assert request.times is not None
    assert (request.times.drafted_tokens or 0) > 0
    assert (request.times.accepted_tokens or 0) > 0
    assert figures.counts.total == sum(count or 0 for count in figures.counts.per_arrival)
    assert not any(token.logprob == 0 for one in request.arrivals for token in one.tokens)
