"""Requests to a scripted server: every engine's stream, and all that can be wrong with one."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.figures.arrivals import CountSource, arrival_figures, token_counts
from inference.records.arrivals import ArrivalKind, Channel, RemoteRequest
from inference.records.endpoints import EngineKind, Extra
from inference.records.status import RunState
from inference.remote.address import endpoint_at
from inference.remote.asking import ask
from inference.remote.connection import Wire
from inference.remote.messages import message_for
from tests.inference.remote.requests import HELLO, asked, asked_in_turn, new_recorder, text_of
from tests.inference.remote.scripted_server import (
    BREAK,
    HOLD,
    JSON,
    Script,
    ScriptedServer,
    running_server,
    said,
    sse,
)
from tests.inference.remote.streams import (
    CHAT,
    OTHER,
    STREAMS,
    VLLM,
    chunk,
    engine_routes,
    entry,
    logprobs,
    timings,
    usage,
)

PLAIN = message_for(HELLO, EngineKind.OTHER, ())
KEY = "sk-very-secret-7"
ROLE = chunk({"role": "assistant", "content": ""})
END = chunk({}, finish_reason="stop")


def streamed(server: ScriptedServer, *pieces: bytes | object) -> RemoteRequest:
    """Return a request whose answer is these pieces."""
    server.routes[CHAT] = Script(pieces)
    return asked(server.address)


@pytest.mark.parametrize(
    ("kind", "text", "counted"),
    [
        (EngineKind.VLLM, "Hello", (CountSource.IDS, (0, 1, 1, 1, 0), 3)),
        (EngineKind.SGLANG, "Hello!", (CountSource.RUNNING, (0, 1, 2, 0, 0), 3)),
        (EngineKind.LLAMA_CPP, "Hi \U0001f600", (CountSource.RUNNING, (0, 0, 0, 1, 3, 0, 1), 5)),
        (EngineKind.OLLAMA, "Hello", (CountSource.ENTRIES, (1, 1, 0), 3)),
        (EngineKind.TRANSFORMERS, "Hello", (CountSource.UNKNOWN, (0, None, 0, 0), 4)),
        (EngineKind.OTHER, "Hello", (CountSource.UNKNOWN, (0, None, None, 0, 0), 3)),
    ],
    ids=lambda value: str(value) if isinstance(value, EngineKind) else "",
)
def test_each_engines_stream_gives_its_text_and_its_count(
    server: ScriptedServer, kind: EngineKind, text: str, counted: tuple[object, ...]
) -> None:
    server.routes |= engine_routes(kind)

    request = asked(server.address, engine=kind)

    counts = token_counts(request)
    assert (request.state, request.message) == (RunState.DONE, "")
    assert text_of(request).decode() == text
    assert (counts.source, counts.per_arrival, counts.total) == counted


def test_a_role_is_no_token_and_ttft_is_that_of_the_first_text(server: ScriptedServer) -> None:
    """A server sent the role before it generated, and TTFT came out as nothing."""
    server.routes |= engine_routes(EngineKind.TRANSFORMERS)

    request = asked(server.address, engine=EngineKind.TRANSFORMERS)

    figures = arrival_figures(request)
    role, text = request.arrivals[:2]
    sent_s = request.marks.sent_s
    assert (role.kind, text.kind) == (ArrivalKind.EMPTY, ArrivalKind.TEXT)
    assert sent_s is not None
    assert figures.ttft_s == text.at_s - sent_s


def test_prompt_progress_is_no_token_even_with_an_id_beside_it(server: ScriptedServer) -> None:
    fake = chunk({"content": ""}, token_ids=[0], _prompt_progress={"total": 9, "processed": 3})
    real = chunk({"content": "a"}, token_ids=[7], finish_reason="stop")

    request = streamed(server, *sse(fake, real, "[DONE]"))

    assert [one.kind for one in request.arrivals] == [ArrivalKind.PROGRESS, ArrivalKind.TEXT]
    assert token_counts(request).per_arrival == (0, 1)


def test_reasoning_under_any_name_is_a_token_and_no_answer(server: ScriptedServer) -> None:
    deltas = [{"reasoning": "a"}, {"reasoning_content": "b"}, {"thinking": "c"}]
    tool = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}
    events = [chunk(one) for one in (*deltas, {"content": "d"}, tool)]

    request = streamed(server, *sse(*events, END, "[DONE]"))

    assert text_of(request, Channel.REASONING) == b"abc"
    assert text_of(request) == b"d"
    assert text_of(request, Channel.TOOL) == b"f{}"


def test_events_that_came_in_one_read_share_its_moment(server: ScriptedServer) -> None:
    """Two chunks of HTTP in one packet are two pieces of a body, and were given two moments."""
    events = sse(*(chunk({"content": text}) for text in "abc"), END, "[DONE]")
    server.routes[CHAT] = Script((events[:2], *events[2:]))

    request = asked(server.address)

    one, two, three = request.arrivals[:3]
    assert (one.at_s, one.read) == (two.at_s, two.read)
    assert three.read >= two.read


def test_text_is_byte_exact_where_a_stream_cuts_a_character(server: ScriptedServer) -> None:
    whole = b"".join(sse(chunk({"content": "caf\u00e9 \U0001f600\u2028\x85"}), END, "[DONE]"))
    whole = whole.replace(b"\\u00e9", "\u00e9".encode())
    pieces = [whole[at : at + 1] for at in range(len(whole))]

    request = streamed(server, *pieces)

    assert text_of(request) == "caf\u00e9 \U0001f600\u2028\x85".encode()


def test_half_a_character_in_two_escapes_is_put_together(server: ScriptedServer) -> None:
    halves = (
        b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "\\ude00b"}}]}\n\n',
    )

    request = streamed(server, *halves, *sse(END, "[DONE]"))

    assert text_of(request) == "a\U0001f600b".encode()


def test_half_a_character_in_a_word_that_is_kept_is_replaced(server: ScriptedServer) -> None:
    """A run with such a word could not be written."""
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "\\ud83d"}]}\n\n'

    assert streamed(server, *sse(chunk({"content": "a"})), end).finish == "\ufffd"


def test_bytes_that_are_no_utf8_come_out_as_they_came_in(server: ScriptedServer) -> None:
    event = b'data: {"choices": [{"delta": {"content": "a\xf0\x9f"}}]}\n\n'

    request = streamed(server, event, *sse(END, "[DONE]"))

    assert text_of(request) == b"a\xf0\x9f"


def test_comments_say_that_the_engine_is_alive_and_carry_no_token(server: ScriptedServer) -> None:
    request = streamed(server, b": keep-alive\n\n", *OTHER[:2], b":\n", *OTHER[2:])

    kinds = [one.kind for one in request.arrivals]
    assert kinds.count(ArrivalKind.ALIVE) == 2
    assert text_of(request) == b"Hello"
    assert token_counts(request).total == 3


@pytest.mark.parametrize("zeros", [usage(0, 0), None, {}, "x", {"completion_tokens": -1}])
def test_usage_of_zeros_or_none_is_not_known_and_never_0(
    server: ScriptedServer, zeros: object
) -> None:
    events = [chunk({"content": "a"}, _usage=zeros), chunk({}, finish_reason="stop", _usage=zeros)]

    request = streamed(server, *sse(ROLE, *events, "[DONE]"))

    assert request.state is RunState.DONE
    assert request.usage is None
    assert token_counts(request).total is None
    assert arrival_figures(request).tpot_s is None


def test_a_count_that_shrinks_takes_no_token_back(server: ScriptedServer) -> None:
    events = [chunk({"content": "a"}, _usage=usage(4, n)) for n in (1, 3, 2, 4)]

    request = streamed(server, *sse(*events, END, "[DONE]"))

    assert token_counts(request).per_arrival == (1, 2, 0, 1, 0)
    assert request.usage is not None
    assert request.usage.output_tokens == 4


def test_ten_thousand_tokens_in_one_chunk_are_ten_thousand_tokens(server: ScriptedServer) -> None:
    many = chunk({"content": "a" * 10_000}, token_ids=list(range(10_000)))

    request = streamed(
        server, *sse(many, END, {"choices": [], "usage": usage(4, 10_000)}, "[DONE]")
    )

    assert token_counts(request).total == 10_000
    assert arrival_figures(request).tpot_s is None
    assert request.state is RunState.DONE


def test_a_probability_of_exactly_one_beside_speculation_is_not_given(
    server: ScriptedServer,
) -> None:
    drafted = chunk(
        {"content": "a"}, logprobs=logprobs(entry("a", 0.0)), _timings=timings(2, draft_n=3)
    )
    plain = chunk({"content": "b"}, logprobs=logprobs(entry("b", 0.0)), _timings=timings(3))

    request = streamed(server, *sse(drafted, plain, END, "[DONE]"))

    named = [one.tokens[0].logprob for one in request.arrivals[:2]]
    assert named == [None, 0.0]


def test_tokens_of_the_completions_route_have_their_probabilities(server: ScriptedServer) -> None:
    listed = {
        "tokens": ["a", " b"],
        "token_logprobs": [-0.5, None],
        "top_logprobs": [{"a": -0.5, "c": -1.5}, None],
    }
    event = {"choices": [{"text": "a b", "logprobs": listed, "finish_reason": "length"}]}
    server.routes["/v1/completions"] = Script(sse(event, "[DONE]"))

    request = asked(server.address, wanted=replace(HELLO, is_raw=True))

    first, second = request.arrivals[0].tokens
    assert (first.raw, first.logprob, len(first.candidates)) == (b"a", -0.5, 2)
    assert (second.raw, second.logprob, second.candidates) == (b" b", None, ())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"error": {"message": "CUDA out of memory", "code": 500}}, "CUDA out of memory"),
        ({"error": "worker died"}, "worker died"),
        ({"object": "error", "message": "too long"}, "too long"),
        ({"detail": "Unexpected fields"}, "Unexpected fields"),
    ],
)
def test_an_error_inside_a_good_answer_fails_with_the_engines_words(
    server: ScriptedServer, error: object, words: str
) -> None:
    request = streamed(server, *sse(chunk({"content": "a"}), error, "[DONE]"))

    assert request.state is RunState.FAILED
    assert words in request.message
    assert text_of(request) == b"a"


def test_half_a_json_fails_with_what_came(server: ScriptedServer) -> None:
    request = streamed(server, *sse(chunk({"content": "a"}), '{"error": "say "no""}', "[DONE]"))

    assert request.state is RunState.FAILED
    assert 'no JSON object: {"error": "say "no""}' in request.message
    assert text_of(request) == b"a"


@pytest.mark.parametrize("event", ["[1]", '"a"', "1" * 5000, "[" * 100_000, "null", "NaN"])
def test_json_that_is_no_object_fails_in_a_sentence(server: ScriptedServer, event: str) -> None:
    request = streamed(server, *sse(event))

    assert request.state is RunState.FAILED
    assert len(request.message) < 400


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"choices": None},
        {"choices": [None, 1, "a", []]},
        {"choices": [{"delta": None, "logprobs": {"content": [None, {"bytes": [999]}]}}]},
        {"choices": [{"delta": {"content": 1, "tool_calls": [{}]}, "token_ids": [-1, True]}]},
        {"choices": [], "usage": {"completion_tokens": 10**30}, "timings": {"prompt_ms": "x"}},
        {"choices": [{"logprobs": {"tokens": [1, "a"], "top_logprobs": [3]}}]},
    ],
)
def test_an_event_of_another_shape_is_no_token_and_no_failure(
    server: ScriptedServer, event: object
) -> None:
    request = streamed(server, *sse(event, chunk({"content": "a"}), END, "[DONE]"))

    assert (request.state, text_of(request)) == (RunState.DONE, b"a")


def test_a_stream_without_its_end_mark_is_whole_where_the_answer_was_finished(
    server: ScriptedServer,
) -> None:
    request = streamed(server, *sse(chunk({"content": "a"}), END))

    assert (request.state, request.message) == (RunState.DONE, "")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (sse(chunk({"content": "a"})), "ended before"),
        ((*sse(chunk({"content": "a"})), b'data: {"choices": [{"delta": {"con'), "in the middle"),
        ((*sse(chunk({"content": "a"})), b'data: {"choices": "\xf0\x9f'), "in the middle"),
        ((*sse(chunk({"content": "a"})), BREAK), "broke off"),
    ],
    ids=["no end", "half an event", "half a character", "connection lost"],
)
def test_a_stream_that_is_cut_fails_and_keeps_what_came(
    server: ScriptedServer, pieces: tuple[bytes | object, ...], words: str
) -> None:
    request = streamed(server, *pieces)

    assert request.state is RunState.FAILED
    assert words in request.message
    assert text_of(request) == b"a"


def test_a_connection_lost_after_the_answer_is_a_note(server: ScriptedServer) -> None:
    request = streamed(server, *sse(chunk({"content": "a"}), END), BREAK)

    assert request.state is RunState.DONE
    assert "after the answer" in request.notes[0]


def test_a_server_that_holds_the_stream_after_its_end_mark_holds_nobody(
    server: ScriptedServer,
) -> None:
    request = streamed(server, *sse(chunk({"content": "a"}), END, "[DONE]"), HOLD)

    assert request.state is RunState.DONE


@pytest.mark.parametrize("pieces", [(HOLD,), (*OTHER[:2], HOLD)], ids=["at once", "in between"])
def test_a_server_that_goes_silent_is_left(
    server: ScriptedServer, pieces: tuple[bytes | object, ...]
) -> None:
    server.routes[CHAT] = Script(pieces)

    request = asked(server.address, silence_s=0.2)

    assert request.state is RunState.FAILED
    assert "sent nothing for 0.2 s" in request.message


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (said({"error": {"message": "no key"}}, 401), "answers 401: no key; give its key"),
        (said({"error": "no model m"}, 404), "answers 404: no model m; check the address"),
        (said({"detail": "Unexpected fields"}, 422), "answers 422: Unexpected fields"),
        (said({"message": "slow down"}, 429), "answers 429"),
        (Script((b"boom\n\x1b[31m\xff",), status=500, kind="text/plain"), "answers 500: boom"),
        (Script((b"<html>no</html>",), status=502, kind="text/html"), "502: an HTML page"),
        (said({"error": {"message": "Loading model"}}, 503), "Loading model; wait until"),
        (Script((b"<!DOCTYPE html><p>hi",), kind="text/html"), "an HTML page; it is no engine"),
        (said({"error": "not now"}), "did not stream but answered with application/json: not now"),
        (
            Script(status=307, headers=(("Location", "http://elsewhere/v1"),)),
            "points to http://elsewhere/v1; redirects are not followed",
        ),
        (Script(OTHER, headers=(("Content-Encoding", "gzip"),)), "compressed (gzip)"),
    ],
    ids=["401", "404", "422", "429", "500", "502", "503", "html", "json", "redirect", "gzip"],
)
def test_an_answer_that_is_no_stream_is_one_sentence_and_the_next_run_works(
    server: ScriptedServer, script: Script, words: str
) -> None:
    server.routes[CHAT] = script

    refused = asked(server.address)
    server.routes[CHAT] = Script(OTHER)
    good = asked(server.address)

    assert refused.state is RunState.FAILED
    assert words in refused.message
    assert refused.message.isprintable()
    assert refused.arrivals == ()
    assert text_of(good) == b"Hello"


def test_a_server_that_is_down_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    request = asked(f"http://127.0.0.1:{port}")

    assert request.state is RunState.FAILED
    assert f"http://127.0.0.1:{port} cannot be reached" in request.message


def test_a_redirect_sends_the_key_nowhere(server: ScriptedServer) -> None:
    with running_server() as elsewhere:
        place = f"{elsewhere.address}{CHAT}"
        server.routes[CHAT] = Script(status=302, headers=(("Location", place),))

        asked(endpoint_at(server.address, KEY))

        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
        assert elsewhere.received == []


@pytest.fixture
def secured() -> Iterator[ScriptedServer]:
    """Return a server with a certificate that nobody vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("own_certificate.pem"))
    with running_server(context) as server:
        yield server


def test_a_certificate_that_is_not_valid_is_one_sentence_and_gets_no_request(
    secured: ScriptedServer,
) -> None:
    secured.routes[CHAT] = Script(OTHER)

    request = asked(endpoint_at(secured.address, KEY))

    assert request.state is RunState.FAILED
    assert "certificate of https://127.0.0.1" in request.message
    assert "not valid" in request.message
    assert secured.received == []


def test_a_key_is_in_no_record_and_no_log_even_if_the_server_repeats_it(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.routes[CHAT] = said({"error": {"message": f"Incorrect API key: {KEY}"}}, 401)

    refused = asked(endpoint_at(server.address, KEY))
    server.routes[CHAT] = Script(sse({"error": f"bad {KEY}"}, "[DONE]"))
    failed = asked(endpoint_at(server.address, KEY))
    server.routes[CHAT] = Script((f"data: not json {KEY}\n\n".encode(),))
    broken = asked(endpoint_at(server.address, KEY))

    assert "does not take the key" in refused.message
    texts = [repr(one) for one in (refused, failed, broken)] + [caplog.text]
    assert [text for text in texts if KEY in text] == []


def test_one_connection_serves_several_requests_and_connecting_is_marked_once(
    server: ScriptedServer,
) -> None:
    server.routes[CHAT] = Script(OTHER)

    first, second = asked_in_turn(server.address, [PLAIN, PLAIN])

    assert first.marks.connected_s is not None
    assert second.marks.connected_s is None
    assert len({one.connection for one in server.received}) == 1


def test_an_idle_connection_that_the_server_closed_is_opened_anew(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(OTHER)
    server.closes_idle = True

    requests = asked_in_turn(server.address, [PLAIN] * 3)

    assert {one.state for one in requests} == {RunState.DONE}
    assert len(server.received) == 3


def test_stop_closes_the_stream_and_keeps_what_came(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script((*OTHER[:2], HOLD))
    recorder = new_recorder()

    async def run() -> None:
        async with Wire(endpoint_at(server.address)) as wire:
            task = asyncio.create_task(ask(wire, PLAIN, recorder))
            await asyncio.to_thread(server.opened.wait, 20)
            while recorder.arrivals < 2:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.closed.wait, 20)

    asyncio.run(run())

    request = recorder.snapshot()
    assert request.state is RunState.STOPPED
    assert text_of(request) == b"Hel"


def test_marks_are_in_the_order_in_which_they_happen(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(VLLM)

    marks = asked(server.address, engine=EngineKind.VLLM, extras=list(Extra)).marks

    moments = [
        marks.planned_s,
        marks.sent_s,
        marks.connected_s,
        marks.written_s,
        marks.headers_s,
        marks.first_byte_s,
        marks.ended_s,
    ]
    known = [one for one in moments if one is not None]
    # A small answer's first bytes may be read with its headers, which are marked once parsed.
    assert len(known) == len(moments)
    assert known[:4] == sorted(known[:4])
    assert known[3] <= known[5] + 1e-3
    assert known[5] <= known[6]


def test_the_engines_own_times_stand_apart(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(VLLM)
    vllm = asked(server.address, engine=EngineKind.VLLM)
    server.routes |= engine_routes(EngineKind.OLLAMA)
    ollama = asked(server.address, engine=EngineKind.OLLAMA)

    assert vllm.times is not None
    assert (vllm.times.queue_s, vllm.times.prefill_s, vllm.times.decode_s) == (0.005, 0.02, 0.03)
    assert vllm.usage is not None
    assert vllm.usage.cached_tokens == 2
    assert ollama.times is not None
    assert (ollama.times.load_s, ollama.times.total_s) == (0.01, 0.06)


def test_what_is_sent_is_what_was_asked_for(server: ScriptedServer) -> None:
    server.routes[CHAT] = Script(OTHER)

    request = asked(
        server.address, engine=EngineKind.VLLM, extras=(Extra.USAGE, Extra.COUNTS, Extra.TOKEN_IDS)
    )

    fields = server.received[0].fields
    assert fields["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert fields["return_token_ids"] is True
    assert fields["messages"] == [{"role": "user", "content": "Hello?"}]
    assert (fields["max_tokens"], fields["temperature"], fields["seed"]) == (8, 0.0, 1)
    assert request.asked_fields == ("return_token_ids", "stream_options")
    assert set(STREAMS) == set(EngineKind)
    assert server.received[0].headers["content-type"] == JSON
