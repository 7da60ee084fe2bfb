"""A run of an engine at an address, as tests of what keeps and draws such runs take it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from inference.records.arrivals import (
    Channel,
    EngineTimes,
    RemoteRun,
    SaidCandidate,
    SaidToken,
    Usage,
)
from inference.records.endpoints import EndpointInfo, EngineKind
from inference.remote.chunks import Chunk
from tests.inference.remote.requests import recorded

LIKELY = SaidToken(
    raw=b"<b>",
    token_id=5,
    logprob=-0.5,
    candidates=(SaidCandidate(raw=b"<b>", logprob=-0.5), SaidCandidate(raw=b"no", logprob=-1.5)),
)
ONE = Chunk(texts=((Channel.ANSWER, "<b>"),), token_ids=(5,), tokens=(LIKELY,))
TWO = Chunk(texts=((Channel.ANSWER, " so it"),), token_ids=(6, 7))
END = Chunk(
    finish="stop",
    usage=Usage(prompt_tokens=4, output_tokens=3),
    times=EngineTimes(queue_s=0.25, prefill_s=0.5),
)


def kept_run(run_id: str, prompt: str = "why", model: str = "Qwen/Qwen3-8B-FP8") -> RemoteRun:
    """Return a run of one request: a token after a second, two together half a second later."""
    request = recorded((1.0, [ONE]), (1.5, [TWO]), (1.6, [END]))
    asked = replace(request.ask, prompt_text=prompt, model_id=model)
    return RemoteRun(
        run_id=run_id,
        endpoint=EndpointInfo(
            address="http://127.0.0.1:8000",
            engine=EngineKind.VLLM,
            version="0.32.0",
            models=(),
            offers=(),
        ),
        started_at=datetime(2026, 12, 1, tzinfo=UTC),
        versions=(),
        requests=(replace(request, ask=asked),),
    )
