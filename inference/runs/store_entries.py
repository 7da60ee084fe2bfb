"""What the list of kept runs shows of each: a small record made from its own file. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import TypeAdapter

from inference.figures.latency import batch_tokens_per_s, latency_summary
from inference.records.options import ONE_BATCH, BatchPlan, CacheKind, DecodeMode, Sampling
from inference.records.run import RunTrace
from inference.records.status import RunState

HEAD_CHARACTERS = 300
ENTRY_VERSION = 1  # one more with each field added, so that entries written before are made again
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run of the list.

    Attributes:
        key: Its name on disk and in addresses; for runs made here the run's id.
        name: Given by a user; empty when none was.
        prompts: The beginning of each prompt.
        answers: The beginning of each output.
        max_new_tokens: Of the first request, as ``sampling`` is.
        ttft_s: Of a run of one request; None for several, and where it was not measured.
        tokens_per_s: In decode steps, of all rows together; None where it was not measured.
        file_bytes: Size of the run file the entry was made from.
        version: Of these fields; an entry of another version is made again from its run file.
        problem: Why the run file cannot be read; empty when it can.
    """

    key: str
    name: str = ""
    model_id: str = ""
    device_name: str = ""
    dtype: str = ""
    attention: str = ""
    started_at: datetime = field(default=LONG_AGO)
    state: RunState = RunState.FAILED
    message: str = ""
    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    prompt_tokens: int = 0
    output_tokens: int = 0
    steps: int = 0
    cache: CacheKind = CacheKind.DYNAMIC
    chunk_tokens: int | None = None
    decode: DecodeMode = DecodeMode.EAGER
    plan: BatchPlan = ONE_BATCH
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    max_new_tokens: int = 0
    ttft_s: float | None = None
    tokens_per_s: float | None = None
    file_bytes: int = 0
    problem: str = ""
    version: int = 0

    @property
    def title(self) -> str:
        """The name, or else the beginning of the prompt on one line."""
        return self.name or " ".join(" ".join(self.prompts).split()) or self.key


def entry_of(trace: RunTrace, key: str, file_bytes: int) -> RunEntry:
    """Return the entry of a run."""
    info = trace.info
    first = trace.requests[0] if trace.requests else None
    return RunEntry(
        key=key,
        version=ENTRY_VERSION,
        model_id=info.model_id,
        device_name=info.device.name,
        dtype=info.device.dtype,
        attention=info.attention,
        started_at=info.started_at if info.started_at.tzinfo else LONG_AGO,
        state=trace.state,
        message=trace.message,
        prompts=tuple(request.prompt_text[:HEAD_CHARACTERS] for request in trace.requests),
        answers=tuple(output.text[:HEAD_CHARACTERS] for output in trace.outputs),
        prompt_tokens=sum(len(request.prompt_ids) for request in trace.requests),
        output_tokens=sum(len(output.token_ids) for output in trace.outputs),
        steps=len(trace.events),
        cache=info.cache,
        chunk_tokens=info.chunk_tokens,
        decode=info.decode,
        plan=info.plan,
        sampling=first.sampling if first is not None else Sampling(),
        seed=info.seed,
        max_new_tokens=first.max_new_tokens if first is not None else 0,
        ttft_s=_ttft_s(trace),
        tokens_per_s=batch_tokens_per_s(trace),
        file_bytes=file_bytes,
    )


def is_current(entry: RunEntry, key: str, file_bytes: int) -> bool:
    """Tell whether an entry was made from this run file, with all the fields there are."""
    return (entry.key, entry.file_bytes, entry.version) == (key, file_bytes, ENTRY_VERSION)


def entry_to_json(entry: RunEntry) -> bytes:
    """Return the entry's file."""
    return _ENTRY.dump_json(entry)


def entry_from_json(content: bytes) -> RunEntry:
    """Return the entry of a file.

    Raises:
        ValueError: It is none.
    """
    return _ENTRY.validate_json(content)


_ENTRY = TypeAdapter(RunEntry)


def _ttft_s(trace: RunTrace) -> float | None:
    is_alone = len(trace.requests) == 1
    return latency_summary(trace, trace.requests[0].request_id).ttft_s if is_alone else None
