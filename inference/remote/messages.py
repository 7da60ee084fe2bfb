"""What is sent to each engine: the body of a request, and the extra fields that it may take."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from inference.records.arrivals import RemoteAsk
from inference.records.endpoints import EngineKind, Extra
from inference.records.errors import InputError

SILENCE_S = 60.0  # longest wait for an engine's next byte, unless told otherwise
CANDIDATES = 5
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
OLLAMA_CHAT, OLLAMA_GENERATE = "/api/chat", "/api/generate"
TAKES_TOP_K = frozenset(
    {EngineKind.VLLM, EngineKind.SGLANG, EngineKind.LLAMA_CPP, EngineKind.OLLAMA}
)
USAGE = {"stream_options": {"include_usage": True}}
RUNNING = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
CHAT_PROBABILITIES = {"logprobs": True, "top_logprobs": CANDIDATES}
LIST_PROBABILITIES = {"logprobs": CANDIDATES}
IDS = {"return_token_ids": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request as it goes over the wire.

    Attributes:
        fields: Names of the extra fields in it.
        is_lines: The answer is JSON a line and not server-sent events.
    """

    path: str
    body: bytes
    fields: tuple[str, ...]
    is_lines: bool


def extra_fields(engine: EngineKind, *, is_raw: bool) -> dict[Extra, dict[str, Any]]:
    """Return the fields that ask an engine for each extra; what comes unasked has none.

    Source:
        The engines' request classes: vLLM 0.32 ``entrypoints/openai/*/protocol.py``, SGLang 0.5.23
        ``entrypoints/openai/protocol.py``, llama.cpp b11549 ``tools/server/README.md``, Ollama
        (August 2026) ``api/types.go``. SGLang refuses ``return_token_ids`` in streams of a chat.
    """
    probabilities = LIST_PROBABILITIES if is_raw else CHAT_PROBABILITIES
    if engine is EngineKind.VLLM:
        return {
            Extra.USAGE: USAGE,
            Extra.COUNTS: RUNNING,
            Extra.TOKEN_IDS: IDS,
            Extra.PROBABILITIES: probabilities,
        }
    if engine is EngineKind.SGLANG:
        ids = {Extra.TOKEN_IDS: IDS} if is_raw else {}
        return {
            Extra.USAGE: USAGE,
            Extra.COUNTS: RUNNING,
            Extra.PROBABILITIES: probabilities,
            **ids,
        }
    if engine is EngineKind.LLAMA_CPP:
        return {
            Extra.USAGE: USAGE,
            Extra.COUNTS: {"timings_per_token": True},
            Extra.PROBABILITIES: probabilities,
            Extra.PROGRESS: {"return_progress": True},
        }
    if engine is EngineKind.OLLAMA:
        return {Extra.PROBABILITIES: CHAT_PROBABILITIES}
    if engine is EngineKind.TRANSFORMERS:
        return {}
    return {Extra.USAGE: USAGE, Extra.PROBABILITIES: probabilities}


def message_for(ask: RemoteAsk, engine: EngineKind, extras: Collection[Extra]) -> Message:
    """Return the request for one sequence, streamed, with the extras named.

    Raises:
        InputError: The engine does not take a setting.
    """
    if ask.sampling.top_k is not None and engine not in TAKES_TOP_K:
        msg = f"{engine} has no setting for the k likeliest tokens; leave top-k out"
        raise InputError(msg)
    offered = extra_fields(engine, is_raw=ask.is_raw)
    fields: dict[str, Any] = {}
    for extra in extras:
        for name, value in offered.get(extra, {}).items():
            former = fields.get(name)
            fields[name] = {**former, **value} if isinstance(former, dict) else value
    is_lines = engine is EngineKind.OLLAMA
    body = {"model": ask.model_id, "stream": True, **_prompt(ask)}
    body |= _ollama_settings(ask) if is_lines else _settings(ask)
    if is_lines:
        path = OLLAMA_GENERATE if ask.is_raw else OLLAMA_CHAT
    else:
        path = COMPLETIONS if ask.is_raw else CHAT
    return Message(
        path=path,
        body=json.dumps(body | fields).encode(),
        fields=tuple(sorted(fields)),
        is_lines=is_lines,
    )


def _prompt(ask: RemoteAsk) -> dict[str, Any]:
    if ask.is_raw:
        return {"prompt": ask.prompt_text}
    turns = ask.turns or (("user", ask.prompt_text),)
    return {"messages": [{"role": role, "content": content} for role, content in turns]}


def _settings(ask: RemoteAsk) -> dict[str, Any]:
    sampling = ask.sampling
    chosen = {"top_k": sampling.top_k, "top_p": sampling.top_p}
    return {
        "max_tokens": ask.max_new_tokens,
        "temperature": sampling.temperature,
        "seed": ask.seed,
        **{name: value for name, value in chosen.items() if value is not None},
    }


def _ollama_settings(ask: RemoteAsk) -> dict[str, Any]:
    settings = _settings(ask)
    settings["num_predict"] = settings.pop("max_tokens")
    return {"options": settings, **({"raw": True} if ask.is_raw else {})}
