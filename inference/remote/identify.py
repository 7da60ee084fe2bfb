"""Which engine is at an address and what it tells, by reads that change nothing there.

Source:
    The engines' routes, read in their sources on 2026-11-30: vLLM 0.32, SGLang 0.5.23, llama.cpp
    b11549, transformers 5.24, Ollama (August 2026).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.records.endpoints import (
    Answer,
    EndpointInfo,
    EngineKind,
    Extra,
    Offer,
    ServedModel,
)
from inference.records.errors import EndpointError, InputError
from inference.remote.asking import WIRE_ERRORS
from inference.remote.complaints import GOOD, quoted, status_problem, wire_problem
from inference.remote.connection import Wire, WireMarks
from inference.remote.json_values import (
    NotJsonError,
    count_in,
    name_in,
    object_at,
    object_in,
    objects_at,
    text_in,
)
from inference.remote.messages import extra_fields

READ_LIMIT_S = 3.0
MOST_BYTES = 8 * 2**20
MODELS, METRICS, PROPS = "/v1/models", "/metrics", "/props"
LOADS, SERVER_INFO, VERSION = "/v1/loads", "/server_info", "/version"
OLLAMA_VERSION, OLLAMA_LOADED, ROUTES = "/api/version", "/api/ps", "/openapi.json"
READS: tuple[str, ...] = (
    MODELS,
    METRICS,
    PROPS,
    LOADS,
    SERVER_INFO,
    VERSION,
    OLLAMA_VERSION,
    OLLAMA_LOADED,
    ROUTES,
)
NEEDS_KEY = (401, 403)
MOST_LISTED = 8
# What an engine does not give, or gives without a field for it, and what that needs.
UNASKED: Mapping[EngineKind, Mapping[Extra, tuple[Answer, str]]] = {
    EngineKind.VLLM: {
        Extra.OWN_TIMES: (Answer.DOCUMENTED, "needs --enable-per-request-metrics"),
    },
    EngineKind.SGLANG: {
        Extra.OWN_TIMES: (Answer.NO, "not in streams of the OpenAI routes"),
        Extra.TOKEN_IDS: (Answer.NO, "refused in streams of a chat; given to raw prompts"),
    },
    EngineKind.LLAMA_CPP: {
        Extra.OWN_TIMES: (Answer.DOCUMENTED, "in every answer"),
        Extra.TOKEN_IDS: (Answer.NO, "only beside probabilities, and not of every token"),
    },
    EngineKind.OLLAMA: {
        Extra.USAGE: (Answer.DOCUMENTED, "in every answer"),
        Extra.OWN_TIMES: (Answer.DOCUMENTED, "in every answer"),
    },
    EngineKind.TRANSFORMERS: {
        Extra.USAGE: (Answer.DOCUMENTED, "in every answer"),
        Extra.PROBABILITIES: (Answer.NO, "taken and ignored"),
    },
    EngineKind.OTHER: {},
}
METRICS_FLAGS = {EngineKind.SGLANG: "--enable-metrics", EngineKind.LLAMA_CPP: "--metrics"}


@dataclass(frozen=True, slots=True)
class _Read:
    """What one address answered: its status, and the JSON object in it; empty for none."""

    status: int
    content: dict[str, Any]


async def identify(wire: Wire) -> EndpointInfo:
    """Return what a server says of itself; nothing is generated and nothing changed.

    Raises:
        EndpointError: It cannot be reached, asks for a key, or is no engine.
    """
    found = dict(
        zip(READS, await asyncio.gather(*(_read(wire, path) for path in READS)), strict=True)
    )
    models = found[MODELS]
    endpoint = wire.endpoint
    if models.status in NEEDS_KEY:
        raise EndpointError(status_problem(endpoint, models.status, {}, b""))
    engine, version = _engine(found)
    served = _models(models.content)
    if engine is EngineKind.OTHER and models.status != GOOD:
        answer = f"answers {models.status}" if models.status else "did not answer in time"
        msg = f"{endpoint.address} has no list of models (/v1/models {answer}); "
        msg += "check the address: it is that of an engine with OpenAI routes or of Ollama"
        raise EndpointError(msg)
    return EndpointInfo(
        address=endpoint.address,
        engine=engine,
        version=quoted(endpoint, version),
        models=served,
        offers=offers_of(engine, _metrics_offer(engine, found[METRICS].status), is_raw=False),
    )


def offers_of(engine: EngineKind, metrics: Offer, *, is_raw: bool) -> tuple[Offer, ...]:
    """Return what an engine documents, before anything was tried, in the order of the extras.

    Args:
        engine: Which one.
        metrics: What is known of its metrics page.
        is_raw: Whether prompts go without a chat template, which is another route.
    """
    fields = extra_fields(engine, is_raw=is_raw)
    unasked = UNASKED[engine]
    offers = [
        Offer(extra=extra, answer=Answer.DOCUMENTED, reason="not tried yet")
        if extra in fields
        else Offer(extra=extra, answer=unasked[extra][0], reason=unasked[extra][1])
        if extra in unasked
        else Offer(extra=extra, answer=Answer.NO, reason="this engine has none")
        for extra in Extra
        if extra is not Extra.METRICS
    ]
    return (*offers, metrics)


def chosen_model(info: EndpointInfo, model: str | None) -> str:
    """Return the model to ask: the one named, or the only one on the server's list.

    Raises:
        InputError: None is named and the list has none or several.
    """
    if model is not None:
        return model
    ids = [one.model_id for one in info.models]
    if len(ids) == 1:
        return ids[0]
    if not ids:
        msg = f"{info.address} lists no model; name one with --model"
        raise InputError(msg)
    more = f" and {len(ids) - MOST_LISTED} more" if len(ids) > MOST_LISTED else ""
    msg = f"{info.address} serves {', '.join(ids[:MOST_LISTED])}{more}; name one with --model"
    raise InputError(msg)


async def _read(wire: Wire, path: str) -> _Read:
    """Return what a path answers; status 0 where it sent nothing in time or broke off.

    Raises:
        EndpointError: Nothing listens there, or its certificate is not valid.
    """
    marks = WireMarks()
    try:
        async with (
            asyncio.timeout(2 * READ_LIMIT_S),
            wire.exchange(path, None, silence_s=READ_LIMIT_S, marks=marks) as reply,
        ):
            is_json = reply.status == GOOD and reply.content_type == "application/json"
            body = await reply.first_bytes(MOST_BYTES) if is_json else b""
            return _Read(reply.status, _object(body))
    except TimeoutError:
        return _Read(0, {})
    except WIRE_ERRORS as error:
        if marks.connected_ns is None or path == MODELS:
            raise EndpointError(wire_problem(error, wire.endpoint, READ_LIMIT_S)) from error
        return _Read(0, {})


def _object(body: bytes) -> dict[str, Any]:
    try:
        return object_in(body)
    except NotJsonError:
        return {}


def _engine(found: Mapping[str, _Read]) -> tuple[EngineKind, str]:
    """Return the engine and its version by what only it answers.

    SGLang answers some of Ollama's routes, and vLLM may have a ``/server_info``, so SGLang is asked
    for by what it alone says, and before both.
    """
    props, loads, server = found[PROPS].content, found[LOADS].content, found[SERVER_INFO].content
    if "build_info" in props or "default_generation_settings" in props:
        return EngineKind.LLAMA_CPP, text_in(props, "build_info")
    if "internal_states" in server or "loads" in loads:
        return EngineKind.SGLANG, text_in(server, "version") or text_in(loads, "version")
    version = text_in(found[OLLAMA_VERSION].content, "version")
    if version and "models" in found[OLLAMA_LOADED].content:
        return EngineKind.OLLAMA, version
    version = text_in(found[VERSION].content, "version")
    if version:
        return EngineKind.VLLM, version
    if "/load_model" in object_at(found[ROUTES].content, "paths"):
        return EngineKind.TRANSFORMERS, ""
    return EngineKind.OTHER, ""


def _models(listed: dict[str, Any]) -> tuple[ServedModel, ...]:
    return tuple(
        ServedModel(model_id=model_id, context_tokens=_context(one))
        for one in objects_at(listed, "data")
        if (model_id := name_in(one, "id"))
    )


def _context(model: dict[str, Any]) -> int | None:
    """Return a model's longest context: vLLM and SGLang name it, llama.cpp has it in ``meta``."""
    return count_in(model, "max_model_len") or count_in(object_at(model, "meta"), "n_ctx")


def _metrics_offer(engine: EngineKind, status: int) -> Offer:
    if status == GOOD:
        return Offer(extra=Extra.METRICS, answer=Answer.CAME, reason="read once")
    flag = METRICS_FLAGS.get(engine)
    reason = f"/metrics answers {status}" if status else "/metrics did not answer in time"
    return Offer(
        extra=Extra.METRICS,
        answer=Answer.NO,
        reason=f"{reason}; start the engine with {flag}" if flag else reason,
    )
