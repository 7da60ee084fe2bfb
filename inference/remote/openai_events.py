"""Events of the OpenAI routes, with what vLLM, SGLang and llama.cpp add to them.

Everything is read wherever it occurs, since versions and proxies move things; nothing is taken for
a token but what is one.
"""

from __future__ import annotations

from typing import Any

from inference.records.arrivals import Channel, EngineTimes, SaidCandidate, SaidToken, Usage
from inference.remote.chunks import END, Chunk
from inference.remote.complaints import error_words
from inference.remote.json_values import (
    bytes_at,
    count_in,
    ids_at,
    name_in,
    number_in,
    object_at,
    object_in,
    objects_at,
    text_bytes,
    text_in,
)

DONE = b"[DONE]"
# Names of the reasoning text: vLLM and Ollama; SGLang, DeepSeek and older vLLM; others.
REASONING = ("reasoning", "reasoning_content", "thinking")
MS_PER_S = 1e3


def read_event(content: bytes) -> Chunk:
    """Return what an event says.

    Raises:
        NotJsonError: It is neither JSON nor the end mark.
    """
    if content.strip() == DONE:
        return END
    event = object_in(content)
    error = error_words(event)
    choice = next(iter(objects_at(event, "choices")), None)
    told = choice or {}
    delta = object_at(told, "delta")
    usage = usage_in(object_at(event, "usage"))
    timings = object_at(event, "timings")
    progress = object_at(event, "prompt_progress")
    if progress:
        return Chunk(
            prompt_fed=count_in(progress, "processed"),
            prompt_total=count_in(progress, "total"),
            error=error,
        )
    return Chunk(
        texts=_texts(told, delta),
        token_ids=ids_at(told, "token_ids"),
        tokens=_tokens(object_at(told, "logprobs"), is_drafting=bool(count_in(timings, "draft_n"))),
        running_tokens=_running(usage, timings),
        usage=usage,
        times=_times(object_at(event, "metrics"), timings),
        finish=name_in(told, "finish_reason"),
        error=error,
        has_choice=choice is not None,
    )


def usage_in(usage: dict[str, Any]) -> Usage | None:
    """Return final counts; None where there are none, or nothing but zeros."""
    counts = (count_in(usage, "prompt_tokens"), count_in(usage, "completion_tokens"))
    if not any(counts):
        return None
    return Usage(
        prompt_tokens=counts[0],
        output_tokens=counts[1],
        cached_tokens=count_in(object_at(usage, "prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_in(
            object_at(usage, "completion_tokens_details"), "reasoning_tokens"
        ),
    )


def said_token(entry: dict[str, Any], *, is_drafting: bool = False) -> SaidToken:
    """Return an entry with probabilities in the shape of the chat routes.

    Under speculation some engines say an exact 0 for tokens whose probability they do not know.
    """
    logprob = number_in(entry, "logprob")
    return SaidToken(
        raw=_raw(entry),
        token_id=count_in(entry, "id"),
        logprob=None if is_drafting and logprob == 0 else logprob,
        candidates=tuple(
            SaidCandidate(raw=_raw(one), logprob=said, token_id=count_in(one, "id"))
            for one in objects_at(entry, "top_logprobs")
            if (said := number_in(one, "logprob")) is not None
        ),
    )


def _texts(told: dict[str, Any], delta: dict[str, Any]) -> tuple[tuple[Channel, str], ...]:
    reasoning = next((text for name in REASONING if (text := text_in(delta, name))), "")
    answer = text_in(delta, "content") or text_in(delta, "refusal") or text_in(told, "text")
    tools = "".join(
        text_in(function, "name") + text_in(function, "arguments")
        for call in objects_at(delta, "tool_calls")
        if (function := object_at(call, "function"))
    )
    found = ((Channel.REASONING, reasoning), (Channel.ANSWER, answer), (Channel.TOOL, tools))
    return tuple((channel, text) for channel, text in found if text)


def _tokens(logprobs: dict[str, Any], *, is_drafting: bool) -> tuple[SaidToken, ...]:
    entries = objects_at(logprobs, "content")
    if entries:
        return tuple(said_token(entry, is_drafting=is_drafting) for entry in entries)
    return _listed_tokens(logprobs, is_drafting=is_drafting)


def _listed_tokens(logprobs: dict[str, Any], *, is_drafting: bool) -> tuple[SaidToken, ...]:
    """Return tokens in the shape of the completions route: lists side by side."""
    names, said, tops = (
        found if isinstance(found := logprobs.get(name), list) else []
        for name in ("tokens", "token_logprobs", "top_logprobs")
    )
    tokens: list[SaidToken] = []
    for index, name in enumerate(names):
        if not isinstance(name, str):
            continue
        top = tops[index] if index < len(tops) and isinstance(tops[index], dict) else {}
        entry = {
            "token": name,
            "logprob": said[index] if index < len(said) else None,
            "top_logprobs": [{"token": text, "logprob": value} for text, value in top.items()],
        }
        tokens.append(said_token(entry, is_drafting=is_drafting))
    return tuple(tokens)


def _raw(entry: dict[str, Any]) -> bytes:
    given = bytes_at(entry, "bytes")
    return text_bytes(text_in(entry, "token")) if given is None else given


def _running(usage: Usage | None, timings: dict[str, Any]) -> int | None:
    if usage is not None and usage.output_tokens:
        return usage.output_tokens
    return count_in(timings, "predicted_n")


def _times(metrics: dict[str, Any], timings: dict[str, Any]) -> EngineTimes | None:
    """Return the engine's own durations: vLLM's ``metrics`` or llama.cpp's ``timings``."""
    if timings:
        return EngineTimes(
            prefill_s=_seconds(timings, "prompt_ms"),
            decode_s=_seconds(timings, "predicted_ms"),
            prompt_tokens=count_in(timings, "prompt_n"),
            decode_tokens=count_in(timings, "predicted_n"),
            drafted_tokens=count_in(timings, "draft_n"),
            accepted_tokens=count_in(timings, "draft_n_accepted"),
        )
    if not metrics:
        return None
    drafts = object_at(metrics, "speculative_decoding")
    return EngineTimes(
        queue_s=_seconds(metrics, "queue_time_ms"),
        prefill_s=_seconds(metrics, "time_to_first_token_ms"),
        decode_s=_seconds(metrics, "generation_time_ms"),
        drafted_tokens=count_in(drafts, "num_draft_tokens"),
        accepted_tokens=count_in(drafts, "num_accepted_draft_tokens"),
    )


def _seconds(times: dict[str, Any], name: str) -> float | None:
    value = number_in(times, name)
    return None if value is None or value < 0 else value / MS_PER_S
