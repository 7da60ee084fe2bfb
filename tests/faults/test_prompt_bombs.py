"""Prompt files of millions of entries that are no prompts."""

from __future__ import annotations

import pytest

from inference.prompts.prompt_files import MAX_ENTRIES, read_uploads
from inference.records.prompts import Upload, UploadSettings

MANY = 8_000_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("lists.json", b"[" + b"[]," * MANY + b"[]]", "values and"),
        ("lines.jsonl", b"1\n" * MANY, "lines and"),
        ("line.jsonl", b"[" + b"[]," * MANY + b"[]]", "values and"),
    ],
)
def test_more_values_than_a_prompt_file_has_are_refused_before_they_are_read(
    name: str, content: bytes, words: str
) -> None:
    read = read_uploads([Upload(name=name, content=content)], UploadSettings())

    [left_out] = read.left_out
    assert words in left_out.reason
    assert read.prompts == ()


def test_what_a_file_holds_beyond_a_limit_is_said_and_not_listed() -> None:
    content = b"1\n" * (MAX_ENTRIES + 10)

    read = read_uploads([Upload(name="lines.jsonl", content=content)], UploadSettings())

    assert len(read.left_out) == MAX_ENTRIES
    assert read.notes == (
        f"lines.jsonl: its first {MAX_ENTRIES:,} entries are read, and it has more",
    )
