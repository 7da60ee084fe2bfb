"""What the list of kept runs shows of each: a small record made from its own file. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import TypeAdapter

from inference.records.run import RunTrace
from inference.records.status import RunState

HEAD_CHARACTERS = 300
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run of the list.

    Attributes:
        key: Its name on disk and in addresses; for runs made here the run's id.
        name: Given by a user; empty when none was.
        prompts: The beginning of each prompt.
        answers: The beginning of each output.
        file_bytes: Size of the run file the entry was made from.
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
    file_bytes: int = 0
    problem: str = ""

    @property
    def title(self) -> str:
        """The name, or else the beginning of the prompt on one line."""
        return self.name or " ".join(" ".join(self.prompts).split()) or self.key


def entry_of(trace: RunTrace, key: str, file_bytes: int) -> RunEntry:
    """Return the entry of a run."""
    info = trace.info
    return RunEntry(
        key=key,
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
        file_bytes=file_bytes,
    )


def matching(entries: Iterable[RunEntry], words: str) -> tuple[RunEntry, ...]:
    """Return the entries in which every word occurs, whatever its case."""
    wanted = words.casefold().split()
    return tuple(entry for entry in entries if all(word in _searched(entry) for word in wanted))


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


def _searched(entry: RunEntry) -> str:
    parts = (
        entry.key,
        entry.name,
        entry.model_id,
        entry.device_name,
        entry.dtype,
        entry.state.value,
        f"{entry.started_at:%Y-%m-%d}",
        *entry.prompts,
        *entry.answers,
    )
    return "\n".join(parts).casefold()
