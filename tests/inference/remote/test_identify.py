"""Which engine is at an address, by reads alone, and what it takes, by requests of two tokens."""

from __future__ import annotations

import pytest

from inference.records.endpoints import Answer, EndpointInfo, EngineKind, Extra, ServedModel
from inference.records.errors import EndpointError, InputError
from inference.remote.address import endpoint_at
from inference.remote.identify import chosen_model
from inference.remote.tries import taken_extras
from tests.inference.remote.requests import found_at
from tests.inference.remote.scripted_server import (
    HOLD,
    Received,
    Script,
    ScriptedServer,
    said,
)
from tests.inference.remote.scripted_server import (
    Answer as ScriptedAnswer,
)
from tests.inference.remote.streams import (
    CHAT,
    MODEL_LIST,
    OTHER,
    SGLANG,
    VLLM,
    engine_routes,
)

VERSIONS = {
    EngineKind.VLLM: "0.32.0",
    EngineKind.SGLANG: "0.5.23",
    EngineKind.LLAMA_CPP: "b11549",
    EngineKind.OLLAMA: "0.15.1",
    EngineKind.TRANSFORMERS: "",
    EngineKind.OTHER: "",
}


@pytest.mark.parametrize("kind", EngineKind)
def test_each_engine_is_told_by_what_only_it_answers(
    server: ScriptedServer, kind: EngineKind
) -> None:
    server.routes |= engine_routes(kind)

    info = found_at(server.address)

    assert (info.engine, info.version) == (kind, VERSIONS[kind])
    assert info.models == (ServedModel(model_id="m", context_tokens=4096),)
    assert {one.method for one in server.received} == {"GET"}


@pytest.mark.parametrize("kind", EngineKind)
def test_every_extra_has_an_answer_and_a_reason(server: ScriptedServer, kind: EngineKind) -> None:
    server.routes |= engine_routes(kind)

    info = found_at(server.address)

    assert [one.extra for one in info.offers] == list(Extra)
    assert [one for one in info.offers if not one.reason] == []


def test_a_server_that_is_no_engine_is_named_so(server: ScriptedServer) -> None:
    with pytest.raises(EndpointError, match="has no list of models"):
        found_at(server.address)


def test_a_server_that_says_nothing_is_named_so(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.remote.identify.READ_LIMIT_S", 0.1)
    server.routes["/v1/models"] = Script((b'{"da', HOLD), kind="application/json")

    with pytest.raises(EndpointError, match=r"sent nothing for 0\.1 s"):
        found_at(server.address)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_asks_for_a_key_is_named_so(server: ScriptedServer, status: int) -> None:
    server.routes["/v1/models"] = said({"error": "no"}, status)

    with pytest.raises(EndpointError, match="--key-env"):
        found_at(server.address)
    with pytest.raises(EndpointError, match="key"):
        found_at(endpoint_at(server.address, "sk-wrong"))


def test_a_read_that_is_never_answered_delays_shortly_and_hides_nothing(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.remote.identify.READ_LIMIT_S", 0.2)
    server.routes |= engine_routes(EngineKind.VLLM)
    server.routes["/metrics"] = Script((HOLD,), kind="text/plain")
    server.routes["/props"] = Script((b'{"build', HOLD), kind="application/json")

    info = found_at(server.address)

    assert info.engine is EngineKind.VLLM


@pytest.mark.parametrize(
    "answer",
    [said([]), said({"data": [None, {"id": 3}]}), Script((b"{",), kind="application/json")],
)
def test_a_list_of_models_of_another_shape_is_empty(
    server: ScriptedServer, answer: ScriptedAnswer
) -> None:
    server.routes["/v1/models"] = answer

    assert found_at(server.address).models == ()


def info_with(*models: str) -> EndpointInfo:
    return EndpointInfo(
        address="http://a",
        engine=EngineKind.OTHER,
        version="",
        models=tuple(ServedModel(model_id=one) for one in models),
        offers=(),
    )


def test_the_only_model_is_taken_and_of_several_one_is_asked_for() -> None:
    assert chosen_model(info_with("a"), None) == "a"
    assert chosen_model(info_with("a", "b"), "b") == "b"
    with pytest.raises(InputError, match="serves a, b; name one"):
        chosen_model(info_with("a", "b"), None)
    with pytest.raises(InputError, match="lists no model"):
        chosen_model(info_with(), None)
    with pytest.raises(InputError, match="and 4 more"):
        chosen_model(info_with(*"abcdefghijkl"), None)


def test_what_came_in_a_try_is_taken_and_what_did_not_is_said(server: ScriptedServer) -> None:
    server.routes |= engine_routes(EngineKind.SGLANG)

    info = found_at(server.address, is_tried=True)

    assert taken_extras(info) == (Extra.USAGE, Extra.COUNTS, Extra.PROBABILITIES)
    assert info.offer(Extra.TOKEN_IDS).answer is Answer.NO
    assert len(server.asked(CHAT)) == 1


def test_an_extra_that_is_refused_is_found_and_the_others_are_taken(
    server: ScriptedServer,
) -> None:
    def picky(request: Received) -> Script:
        if "return_token_ids" in request.fields:
            return said({"error": {"message": "return_token_ids is not known"}}, 400)
        return Script(VLLM)

    server.routes |= engine_routes(EngineKind.VLLM) | {CHAT: picky}

    info = found_at(server.address, is_tried=True)

    refused = info.offer(Extra.TOKEN_IDS)
    assert refused.answer is Answer.REFUSED
    assert "return_token_ids is not known" in refused.reason
    assert info.offer(Extra.COUNTS).answer is Answer.CAME


def test_a_field_that_is_taken_and_ignored_is_said(server: ScriptedServer) -> None:
    server.routes |= engine_routes(EngineKind.VLLM) | {CHAT: Script(OTHER)}

    info = found_at(server.address, is_tried=True)

    assert info.offer(Extra.TOKEN_IDS).answer is Answer.NOT_SENT
    assert info.offer(Extra.OWN_TIMES).answer is Answer.DOCUMENTED
    assert taken_extras(info) == (Extra.USAGE, Extra.METRICS)


def test_an_engine_that_refuses_what_it_does_not_know_is_sent_nothing_of_it(
    server: ScriptedServer,
) -> None:
    """A request with a field that transformers serve does not know is refused as a whole."""
    server.routes |= engine_routes(EngineKind.TRANSFORMERS)

    info = found_at(server.address, is_tried=True)

    assert len(server.asked(CHAT)) == 1
    assert info.offer(Extra.USAGE).answer is Answer.CAME
    assert info.offer(Extra.PROBABILITIES).answer is Answer.NO


@pytest.mark.parametrize(
    ("status", "requests"), [(404, 2), (401, 1), (429, 1)], ids=["model", "key", "busy"]
)
def test_a_server_that_answers_nothing_is_one_sentence(
    server: ScriptedServer, status: int, requests: int
) -> None:
    server.routes |= engine_routes(EngineKind.VLLM)
    server.routes[CHAT] = said({"error": {"message": "no such model"}}, status)

    with pytest.raises(EndpointError, match="no such model"):
        found_at(server.address, is_tried=True)

    assert len(server.asked(CHAT)) == requests


def test_raw_prompts_are_tried_on_their_own_route(server: ScriptedServer) -> None:
    server.routes |= {"/v1/models": MODEL_LIST, "/v1/completions": Script(SGLANG)}

    found_at(server.address, is_tried=True, is_raw=True)

    [asked] = server.asked("/v1/completions")
    assert asked.fields["prompt"] == "Hi"
    assert asked.fields["logprobs"] == 5
