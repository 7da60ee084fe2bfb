"""What the list of kept runs says of each: words that tell runs apart, and that find them.

A run is found by everything the list shows of it. No Streamlit, no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inference.records.options import DecodeMode
from inference.records.status import RunState
from inference.runs.store_entries import RunEntry
from inference.runs.subject_keys import plan_words, sampling_words
from visuals.charts.endings import STATES
from visuals.charts.units import amount, counted, date_text, milliseconds

SEPARATOR = " \u00b7 "


def result_text(entry: RunEntry) -> str:
    """Return when the run was made, how it ended, and its figures."""
    when = f"{date_text(entry.started_at)}, {entry.started_at:%H:%M} UTC"
    ended = STATES.get(entry.state, entry.state.value)
    if entry.state is RunState.FAILED and entry.message:
        ended += f": {entry.message}"
    tokens = f"{entry.prompt_tokens:,} + {counted(entry.output_tokens, 'token')}"
    return SEPARATOR.join((when, ended, tokens, *_figures(entry)))


def settings_text(entry: RunEntry) -> str:
    """Return what the run was made with."""
    rows = len(entry.prompts)
    plan = plan_words(entry.plan)
    fed = f"prefill in chunks of {entry.chunk_tokens}" if entry.chunk_tokens else ""
    launched = "" if entry.decode is DecodeMode.EAGER else f"decode {entry.decode.value}"
    parts = (
        entry.model_id.rpartition("/")[2] or entry.model_id,
        entry.dtype,
        entry.device_name,
        f"{rows} prompts in one batch{plan}" if rows > 1 else "",
        f"attention {entry.attention}" if entry.attention else "",
        f"{entry.cache.value} cache",
        fed,
        launched,
        sampling_words(entry.sampling),
        "" if entry.sampling.is_greedy else f"seed {entry.seed}",
    )
    return SEPARATOR.join(part for part in parts if part)


def matching(entries: Iterable[RunEntry], words: str) -> tuple[RunEntry, ...]:
    """Return the entries in which every word occurs, whatever its case."""
    wanted = words.casefold().split()
    return tuple(entry for entry in entries if all(word in _searched(entry) for word in wanted))


def alike(entries: Sequence[RunEntry]) -> tuple[tuple[RunEntry, ...], ...]:
    """Return the entries in groups: runs of a day that differ in their results only.

    A group stands where its first entry stood; a run with a name, and one that cannot be read, is
    a group of its own.
    """
    groups: dict[tuple[object, ...], list[RunEntry]] = {}
    for entry in entries:
        is_single = bool(entry.name or entry.problem)
        likeness = (entry.prompts, settings_text(entry), entry.max_new_tokens)
        key = (entry.key,) if is_single else (entry.started_at.date(), *likeness)
        groups.setdefault(key, []).append(entry)
    return tuple(tuple(group) for group in groups.values())


def group_text(group: Sequence[RunEntry]) -> str:
    """Return what the runs of a group have together: how many, when, and their range of rates."""
    first = min(entry.started_at for entry in group)
    last = max(entry.started_at for entry in group)
    rates = [one.tokens_per_s for one in group if one.tokens_per_s is not None]
    until = f" to {last:%H:%M}" if f"{last:%H:%M}" != f"{first:%H:%M}" else ""
    when = f"{date_text(first)}, {first:%H:%M}{until} UTC"
    parts = [f"{len(group)} runs alike", when]
    if rates:
        low, high = amount(min(rates), "tok/s"), amount(max(rates), "tok/s")
        parts.append(low if low == high else f"{low} to {high}")
    return SEPARATOR.join(parts)


def _figures(entry: RunEntry) -> list[str]:
    ttft = f"TTFT {amount(milliseconds(entry.ttft_s), 'ms')}" if entry.ttft_s is not None else ""
    of_all = ", all rows" if len(entry.prompts) > 1 else ""
    is_timed = entry.tokens_per_s is not None
    rate = f"{amount(entry.tokens_per_s, 'tok/s')}{of_all}" if is_timed else ""
    return [text for text in (ttft, rate) if text]


def _searched(entry: RunEntry) -> str:
    parts = (
        entry.key,
        entry.name,
        entry.model_id,
        f"{entry.started_at:%Y-%m-%d}",
        result_text(entry),
        settings_text(entry),
        entry.problem,
        *entry.prompts,
        *entry.answers,
    )
    return "\n".join(parts).casefold()
