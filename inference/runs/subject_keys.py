"""What makes two requests repeats of each other: typed fields, and the words they are shown in.

No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.records.options import (
    ONE_BATCH,
    BatchPlan,
    CacheKind,
    DecodeMode,
    Padding,
    Sampling,
)
from inference.records.run import Request, RunTrace

HEAD_CHARACTERS = 60
# Shown without its name in a title: the value speaks for itself.
PLAIN_SETTINGS = frozenset({"prompt", "next token", "run", "kernels"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectKey:
    """One prompt under one set of settings: requests with equal keys are repeats.

    Attributes:
        kernels: What the run says of its kernels, as it stands there.
        chunk_tokens: Tokens of the prompt fed in one step at most; None for all at once.
        sampling: The default where it is greedy, since the other fields make no difference then.
        rows: Requests of its run; 1 when it ran alone.
        row_id: Id of its row in a batch of different requests; None alone, and among copies.
        plan: How the batch was run; the default for a request alone.
    """

    prompt_text: str
    prompt_ids: tuple[int, ...]
    model_id: str
    dtype: str
    device_name: str
    attention: str
    cache: CacheKind
    decode: DecodeMode
    kernels: str
    chunk_tokens: int | None
    sampling: Sampling
    max_new_tokens: int
    rows: int
    row_id: str | None
    plan: BatchPlan


def subject_key(trace: RunTrace, request: Request, *, is_copied: bool) -> SubjectKey:
    """Return the key of one request of a run.

    Args:
        trace: The run.
        request: One of its requests.
        is_copied: All requests of the run are copies of this one.
    """
    info, rows = trace.info, len(trace.requests)
    return SubjectKey(
        prompt_text=request.prompt_text,
        prompt_ids=request.prompt_ids,
        model_id=info.model_id,
        dtype=info.device.dtype,
        device_name=info.device.name,
        attention=info.attention,
        cache=info.cache,
        decode=info.decode,
        kernels=info.kernels,
        chunk_tokens=info.chunk_tokens or None,
        sampling=Sampling() if request.sampling.is_greedy else request.sampling,
        max_new_tokens=request.max_new_tokens,
        rows=rows,
        row_id=None if rows == 1 or is_copied else request.request_id,
        plan=info.plan if rows > 1 else ONE_BATCH,
    )


def settings_in_words(key: SubjectKey) -> dict[str, str]:
    """Return the name and the value of every setting, as they are shown."""
    return {
        "prompt": key.prompt_text,
        "model": key.model_id,
        "dtype": key.dtype,
        "device": key.device_name,
        "attention": key.attention,
        "cache": key.cache.value,
        "decode": key.decode.value,
        "kernels": key.kernels,
        "prompt fed": f"{key.chunk_tokens} a step" if key.chunk_tokens else "at once",
        "next token": sampling_words(key.sampling),
        "maximum new tokens": str(key.max_new_tokens),
        "run": _run(key),
    }


def titles_of(keys: Sequence[SubjectKey]) -> list[str]:
    """Return of each subject the settings in which some differ; of one alone its prompt."""
    all_words = [settings_in_words(key) for key in keys]
    names = dict.fromkeys(name for words in all_words for name in words)
    differing = [name for name in names if len({words[name] for words in all_words}) > 1]
    return [
        ", ".join(_titled(name, words[name]) for name in differing) or _head(words["prompt"])
        for words in all_words
    ]


def _titled(name: str, value: str) -> str:
    shown = _brief(value) if name == "kernels" else value
    return _head(shown if name in PLAIN_SETTINGS else f"{name} {shown}")


def sampling_words(sampling: Sampling) -> str:
    """Return how the next token is chosen."""
    if sampling.is_greedy:
        return "greedy"
    top_k = f", top-k {sampling.top_k}" if sampling.top_k else ""
    top_p = f", top-p {sampling.top_p:g}" if sampling.top_p else ""
    return f"temperature {sampling.temperature:g}{top_k}{top_p}"


def _run(key: SubjectKey) -> str:
    if key.rows == 1:
        return "alone"
    row = " of its copies" if key.row_id is None else f" as row {key.row_id}"
    return f"in a batch of {key.rows}{row}{plan_words(key.plan)}"


def plan_words(plan: BatchPlan) -> str:
    """Return what sets a batch apart from the usual one, behind a comma; empty for that one."""
    if plan == ONE_BATCH:
        return ""
    slots = f", {plan.slots} at a time" if plan.slots is not None else ""
    side = ", padded on the right" if plan.padding is Padding.RIGHT else ""
    return f", {plan.policy.value}{slots}{side}"


def _brief(kernels: str) -> str:
    """Return what was installed, or why nothing was, without where and how."""
    return kernels.partition(": ")[2].partition(", ")[0] or kernels


def _head(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= HEAD_CHARACTERS else f"{line[: HEAD_CHARACTERS - 1]}…"
