"""Streams in the shape of each engine's own, as they were read in its source or seen from it."""

from __future__ import annotations

from typing import Any

from inference.records.endpoints import EngineKind
from tests.inference.remote.scripted_server import (
    JSON,
    LINES,
    Answer,
    Received,
    Script,
    ndjson,
    said,
    sse,
)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def chunk(delta: dict[str, Any], **others: object) -> dict[str, Any]:
    """Return a chunk of a chat; ``others`` go beside the delta, or beside the choice with a _."""
    beside = {name[1:]: value for name, value in others.items() if name.startswith("_")}
    inside = {name: value for name, value in others.items() if not name.startswith("_")}
    choice = {"index": 0, "delta": delta, "finish_reason": None, **inside}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice], **beside}


def usage(prompt: int, output: int, **details: object) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        **details,
    }


def entry(text: str, logprob: float = -0.5, **others: object) -> dict[str, Any]:
    raw = list(text.encode())
    top = [{"token": text, "bytes": raw, "logprob": logprob}]
    return {"token": text, "bytes": raw, "logprob": logprob, "top_logprobs": top, **others}


def logprobs(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(entries)}


# Everything asked for: ids and running counts in each chunk, own times on the last one.
VLLM = sse(
    chunk({"role": "assistant", "content": ""}, _usage=usage(4, 0), _prompt_token_ids=[1, 2, 3, 4]),
    chunk({"content": "Hel"}, token_ids=[15], logprobs=logprobs(entry("Hel")), _usage=usage(4, 1)),
    chunk({"content": "lo"}, token_ids=[16], logprobs=logprobs(entry("lo")), _usage=usage(4, 2)),
    chunk({"content": ""}, token_ids=[2], finish_reason="stop", _usage=usage(4, 3)),
    {
        "choices": [],
        "usage": usage(4, 3, prompt_tokens_details={"cached_tokens": 2}),
        "metrics": {
            "time_to_first_token_ms": 20.0,
            "queue_time_ms": 5.0,
            "generation_time_ms": 30.0,
        },
    },
    "[DONE]",
)
# Headers come with the first token; two tokens came in one chunk.
SGLANG = sse(
    chunk({"role": "assistant", "content": ""}, _usage=usage(4, 0)),
    chunk({"content": "Hel"}, logprobs=logprobs(entry("Hel")), _usage=usage(4, 1)),
    chunk({"content": "lo!"}, logprobs=logprobs(entry("lo"), entry("!")), _usage=usage(4, 3)),
    chunk({"content": ""}, finish_reason="length", _usage=usage(4, 3)),
    {"choices": [], "usage": usage(4, 3)},
    "[DONE]",
)


def timings(predicted: int, **others: object) -> dict[str, Any]:
    return {
        "cache_n": 1,
        "prompt_n": 3,
        "prompt_ms": 12.5,
        "predicted_n": predicted,
        "predicted_ms": 10.0 * (predicted - 1),
        **others,
    }


# Progress before any token; three tokens of one character as one chunk with the last one's id.
LLAMA_CPP = sse(
    chunk(
        {"role": "assistant", "content": None},
        _prompt_progress={"total": 4, "cache": 1, "processed": 1, "time_ms": 0},
    ),
    chunk(
        {"role": "assistant", "content": None},
        _prompt_progress={"total": 4, "cache": 1, "processed": 4, "time_ms": 12},
    ),
    chunk({"role": "assistant", "content": None}),
    chunk({"content": "Hi "}, logprobs=logprobs(entry("Hi ", id=57)), _timings=timings(1)),
    chunk(
        {"content": "\U0001f600"},
        logprobs=logprobs({"id": 9, "token": "\ufffd", "bytes": [0x80], "logprob": -1.0}),
        _timings=timings(4),
    ),
    chunk({}, finish_reason="stop"),
    {
        "choices": [],
        "usage": usage(4, 5, prompt_tokens_details={"cached_tokens": 1}),
        "timings": timings(5),
    },
    "[DONE]",
)
OLLAMA = ndjson(
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "Hel"},
     "done": False, "logprobs": [entry("Hel")]},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "lo"},
     "done": False, "logprobs": [entry("lo")]},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""},
     "done": True, "done_reason": "stop", "total_duration": 60_000_000,
     "load_duration": 10_000_000, "prompt_eval_count": 4, "prompt_eval_duration": 20_000_000,
     "eval_count": 3, "eval_duration": 25_000_000},
)  # fmt: skip
# A role at once, an empty text, and no [DONE].
TRANSFORMERS = sse(
    chunk({"role": "assistant"}),
    chunk({"content": "Hello"}),
    chunk({"content": ""}),
    chunk({}, finish_reason="length", _usage=usage(4, 4)),
)
OTHER = sse(
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({}, finish_reason="stop"),
    {"choices": [], "usage": usage(4, 3)},
    "[DONE]",
)
STREAMS: dict[EngineKind, tuple[bytes, ...]] = {
    EngineKind.VLLM: VLLM,
    EngineKind.SGLANG: SGLANG,
    EngineKind.LLAMA_CPP: LLAMA_CPP,
    EngineKind.OLLAMA: OLLAMA,
    EngineKind.TRANSFORMERS: TRANSFORMERS,
    EngineKind.OTHER: OTHER,
}
MODEL_LIST = said({"object": "list", "data": [{"id": "m", "max_model_len": 4096}]})
METRICS = Script((b"# HELP x y\n",), kind="text/plain; version=0.0.4")
IDENTITIES: dict[EngineKind, dict[str, Answer]] = {
    EngineKind.VLLM: {"/version": said({"version": "0.32.0"}), "/metrics": METRICS},
    EngineKind.SGLANG: {
        "/server_info": said({"internal_states": [{}], "version": "0.5.23"}),
        "/api/version": said({"version": "0.9"}),
    },
    EngineKind.LLAMA_CPP: {"/props": said({"build_info": "b11549", "total_slots": 2})},
    EngineKind.OLLAMA: {
        "/api/version": said({"version": "0.15.1"}),
        "/api/ps": said({"models": []}),
    },
    EngineKind.TRANSFORMERS: {
        "/openapi.json": said({"openapi": "3.1.0", "paths": {"/load_model": {}}})
    },
    EngineKind.OTHER: {},
}


def transformers_chat(request: Received) -> Script:
    """Answer as transformers serve does: any field that it does not know refuses the request."""
    known = {"model", "messages", "stream", "max_tokens", "temperature", "seed", "top_p"}
    unknown = set(request.fields) - known
    if unknown:
        detail = f"Unexpected fields in the request: {unknown}"
        return Script((b'{"detail":"%s"}' % detail.encode(),), status=422, kind=JSON)
    return Script(TRANSFORMERS)


def engine_routes(kind: EngineKind) -> dict[str, Answer]:
    """Return the routes of a server of this kind."""
    stream: Answer = Script(STREAMS[kind])
    path = CHAT
    if kind is EngineKind.OLLAMA:
        stream, path = Script(OLLAMA, kind=LINES), "/api/chat"
    elif kind is EngineKind.TRANSFORMERS:
        stream = transformers_chat
    return {"/v1/models": MODEL_LIST, path: stream, **IDENTITIES[kind]}
