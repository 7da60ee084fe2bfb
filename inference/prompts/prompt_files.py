"""Prompt files to prompts: what was read, what was left out and why, before anything runs.

A file is named by the user and never becomes a path. Each complaint is one sentence; one file that
cannot be read leaves the others alone. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from inference.prompts.decoding import check_bytes, decoded
from inference.prompts.json_prompts import json_entries, json_lines_entries
from inference.prompts.table_prompts import (
    csv_columns,
    csv_entries,
    parquet_columns,
    parquet_entries,
)
from inference.records.errors import InputError
from inference.records.prompts import (
    Entry,
    LeftOut,
    Upload,
    UploadedPrompt,
    Uploads,
    UploadSettings,
)

__all__ = ["LeftOut", "Upload", "UploadSettings", "UploadedPrompt", "Uploads"]

MAX_BYTES = 50 * 2**20
MAX_PROMPTS = 10_000
MAX_ENTRIES = 200_000  # of one file, prompts or not
SUFFIXES = ("txt", "md", "csv", "tsv", "parquet", "json", "jsonl", "ndjson")
PLAIN = frozenset({"txt", "md", ""})
NO_ENTRY = "it has no row, line or element that could be a prompt; add one"
PASTED = "pasted text"
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BLANK_LINE = "a blank line"
_Reader = Callable[[Upload, UploadSettings], Iterator[Entry]]


def read_uploads(files: Iterable[Upload], settings: UploadSettings) -> Uploads:
    """Return the prompts of all files in order, each text once, and what was left out."""
    prompts: list[UploadedPrompt] = []
    left_out: list[LeftOut] = []
    notes: list[str] = []
    number_of: dict[tuple[object, ...], int] = {}
    for file in files:
        for entry in _entries_of(file, settings):
            if isinstance(entry, str):
                notes.append(f"{file.name}: {entry}")
                continue
            if isinstance(entry, LeftOut):
                reason = entry.reason.encode(errors="backslashreplace").decode()
                left_out.append(replace(entry, reason=reason))
                continue
            reason = _reason_to_leave(entry, number_of, len(prompts))
            if reason:
                left_out.append(LeftOut(source=entry.source, place=entry.place, reason=reason))
            else:
                prompts.append(entry)
                number_of[_identity(entry)] = len(prompts)
    return Uploads(prompts=tuple(prompts), left_out=tuple(left_out), notes=tuple(notes))


def line_prompts(file: Upload) -> Uploads:
    """Return each line of a text file that is not blank as a prompt, repeated ones too."""
    try:
        _check_size(file)
        check_bytes(file)
        text, note = decoded(file.content)
    except InputError as error:
        left = LeftOut(source=file.name, place="the file", reason=str(error))
        return Uploads(prompts=(), left_out=(left,), notes=())
    lines = [
        (number, line)
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1)
        if line.strip()
    ]
    prompts = tuple(
        UploadedPrompt(source=file.name, place=f"line {number}", text=line)
        for number, line in lines[:MAX_PROMPTS]
    )
    more = f"{MAX_PROMPTS:,} prompts are read at most, and it has {len(lines):,}"
    notes = [note, more if len(lines) > MAX_PROMPTS else ""]
    return Uploads(
        prompts=prompts,
        left_out=(),
        notes=tuple(f"{file.name}: {one}" for one in notes if one),
    )


def columns_of(file: Upload, settings: UploadSettings) -> tuple[str, ...]:
    """Return the columns of a table; none for a file that is no table or cannot be read."""
    try:
        _check_size(file)
        if file.suffix == "parquet":
            return parquet_columns(file)
        return csv_columns(file, settings) if file.suffix in {"csv", "tsv"} else ()
    except InputError:
        return ()  # reading it says why


def is_of_lines(file: Upload) -> bool:
    """Return whether a file is plain text, of which ``run`` takes each line as a prompt."""
    return file.suffix in PLAIN


def _entries_of(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield what a file holds; a file that cannot be read is left out as a whole."""
    try:
        _check_size(file)
        has_notes_only = True
        for number, entry in enumerate(_reader(file)(file, settings)):
            if number >= MAX_ENTRIES:
                yield f"its first {MAX_ENTRIES:,} entries are read, and it has more"
                return
            has_notes_only = has_notes_only and isinstance(entry, str)
            yield entry
        if has_notes_only:
            yield LeftOut(source=file.name, place="the file", reason=NO_ENTRY)
    except InputError as error:
        yield LeftOut(source=file.name, place="the file", reason=str(error))


def _check_size(file: Upload) -> None:
    if not file.content.strip():
        msg = "it is empty; choose another file"
        raise InputError(msg)
    if len(file.content) > MAX_BYTES:
        msg = f"it has more than {MAX_BYTES >> 20} MiB, which is the most; cut it into parts"
        raise InputError(msg)


def _reader(file: Upload) -> _Reader:
    readers: dict[str, _Reader] = {
        **dict.fromkeys(PLAIN, _text_entries),
        "csv": csv_entries,
        "tsv": csv_entries,
        "parquet": parquet_entries,
        "json": json_entries,
        "jsonl": json_lines_entries,
        "ndjson": json_lines_entries,
    }
    reader = readers.get(file.suffix)
    if reader is None:
        check_bytes(file)
        kinds = ", ".join(f".{suffix}" for suffix in SUFFIXES)
        msg = f"files of this kind are not read; give one of {kinds}, or name a plain text .txt"
        raise InputError(msg)
    return reader


def _text_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield one prompt, or one for each part where a separator is given."""
    check_bytes(file)
    text, note = decoded(file.content)
    if note:
        yield note
    chosen = settings.separator or file.separator
    if not chosen:
        yield UploadedPrompt(source=file.name, place="whole", text=text.strip("\r\n"))
        return
    separator = "\n\n" if chosen == BLANK_LINE else chosen
    parts = text.replace("\r\n", "\n").split(separator)
    if len(parts) == 1 and settings.separator:
        named = chosen if chosen == BLANK_LINE else f"the separator {chosen.strip()}"
        yield f"{named} does not occur in it, so it is one prompt"
    for number, part in enumerate(parts, start=1):
        yield UploadedPrompt(source=file.name, place=f"part {number}", text=part.strip())


def _reason_to_leave(
    prompt: UploadedPrompt, number_of: dict[tuple[object, ...], int], count: int
) -> str:
    """Return why a prompt is left out; empty when it is not."""
    if not prompt.text.strip():
        return "it is empty"
    if LONE_SURROGATE.search(prompt.text):
        return "it holds half of a character (a lone surrogate), which no tokenizer takes"
    if count >= MAX_PROMPTS:
        return f"{MAX_PROMPTS:,} prompts are read at most, and these are enough"
    same = number_of.get(_identity(prompt))
    return f"it is the same as prompt {same}" if same else ""


def _identity(prompt: UploadedPrompt) -> tuple[object, ...]:
    return (prompt.text, prompt.turns)


def grouped(left_out: Sequence[LeftOut], limit: int = 20) -> tuple[tuple[str, str, int], ...]:
    """Return what was left out as (source, reason, how many), each pair once, the first few."""
    merged: dict[tuple[str, str], list[str]] = {}
    for one in left_out:
        merged.setdefault((one.source, one.reason), []).append(one.place)
    lines = [
        (f"{source}, {places[0]}" if len(places) == 1 else source, reason, len(places))
        for (source, reason), places in merged.items()
    ]
    return tuple(lines[:limit])
