"""``transformers serve`` on a tiny model, watched as it is: the engine that tells least."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.figures.arrivals import CountSource, arrival_figures
from inference.records.arrivals import ArrivalKind, RemoteAsk
from inference.records.endpoints import Answer, EngineKind, Extra
from inference.records.status import RunState
from inference.remote.tries import taken_extras
from tests.inference.remote.real_engines import transformers_server
from tests.inference.remote.requests import HELLO, asked, found_at


@pytest.fixture(scope="module")
def address(tiny_model_folder: Path) -> Iterator[str]:
    with transformers_server(tiny_model_folder) as listening:
        yield listening


@pytest.fixture
def wanted(tiny_model_folder: Path) -> RemoteAsk:
    return replace(HELLO, model_id=str(tiny_model_folder), prompt_text="the cache")


def test_it_is_recognised_by_its_routes(address: str) -> None:
    info = found_at(address)

    assert info.engine is EngineKind.TRANSFORMERS
    assert info.offer(Extra.METRICS).answer is Answer.NO
    assert taken_extras(info) == ()


@pytest.mark.parametrize("is_raw", [False, True], ids=["chat", "raw"])
def test_an_answer_is_whole_without_an_end_mark(
    address: str, wanted: RemoteAsk, *, is_raw: bool
) -> None:
    request = asked(address, engine=EngineKind.TRANSFORMERS, wanted=replace(wanted, is_raw=is_raw))

    figures = arrival_figures(request)
    assert (request.state, request.message) == (RunState.DONE, "")
    assert (figures.counts.source, figures.counts.total) == (CountSource.UNKNOWN, 8)
    assert request.finish == "length"
    assert figures.is_tpot_at_least


def test_the_role_that_comes_at_once_is_no_token(address: str, wanted: RemoteAsk) -> None:
    request = asked(address, engine=EngineKind.TRANSFORMERS, wanted=wanted)

    figures = arrival_figures(request)
    assert request.arrivals[0].kind is ArrivalKind.EMPTY
    assert request.marks.first_byte_s is not None
    assert request.marks.sent_s is not None
    assert figures.ttft_s is not None
    assert figures.ttft_s >= request.marks.first_byte_s - request.marks.sent_s


def test_a_field_that_it_does_not_know_refuses_the_request(address: str, wanted: RemoteAsk) -> None:
    request = asked(address, engine=EngineKind.VLLM, extras=(Extra.TOKEN_IDS,), wanted=wanted)

    assert request.state is RunState.FAILED
    assert "answers 422: Unexpected fields" in request.message
    assert "return_token_ids" in request.message
