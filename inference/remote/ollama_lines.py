"""Lines of Ollama's own routes: ``/api/chat`` and ``/api/generate``."""

from __future__ import annotations

from typing import Any

from inference.records.arrivals import Channel, EngineTimes, Usage
from inference.remote.chunks import Chunk
from inference.remote.complaints import error_words
from inference.remote.json_values import (
    count_in,
    name_in,
    number_in,
    object_at,
    object_in,
    objects_at,
    text_in,
)
from inference.remote.openai_events import said_token

NS_PER_S = 1e9


def read_line(content: bytes) -> Chunk:
    """Return what a line says.

    Raises:
        NotJsonError: It is no JSON object.
    """
    line = object_in(content)
    message = object_at(line, "message")
    is_end = line.get("done") is True
    return Chunk(
        texts=_texts(line, message),
        tokens=tuple(said_token(entry) for entry in objects_at(line, "logprobs")),
        usage=_usage(line) if is_end else None,
        times=_times(line) if is_end else None,
        finish=(name_in(line, "done_reason") or "done") if is_end else "",
        error=error_words(line),
        is_end=is_end,
    )


def _texts(line: dict[str, Any], message: dict[str, Any]) -> tuple[tuple[Channel, str], ...]:
    tools = "".join(
        text_in(object_at(call, "function"), "name") for call in objects_at(message, "tool_calls")
    )
    found = (
        (Channel.REASONING, text_in(message, "thinking") or text_in(line, "thinking")),
        (Channel.ANSWER, text_in(message, "content") or text_in(line, "response")),
        (Channel.TOOL, tools),
    )
    return tuple((channel, text) for channel, text in found if text)


def _usage(line: dict[str, Any]) -> Usage | None:
    counts = (count_in(line, "prompt_eval_count"), count_in(line, "eval_count"))
    if not any(counts):
        return None
    return Usage(
        prompt_tokens=counts[0],
        output_tokens=counts[1],
        cached_tokens=count_in(line, "prompt_eval_cached_count"),
    )


def _times(line: dict[str, Any]) -> EngineTimes:
    return EngineTimes(
        load_s=_seconds(line, "load_duration"),
        prefill_s=_seconds(line, "prompt_eval_duration"),
        decode_s=_seconds(line, "eval_duration"),
        total_s=_seconds(line, "total_duration"),
        prompt_tokens=count_in(line, "prompt_eval_count"),
        decode_tokens=count_in(line, "eval_count"),
    )


def _seconds(line: dict[str, Any], name: str) -> float | None:
    value = number_in(line, name)
    return None if value is None or value < 0 else value / NS_PER_S
