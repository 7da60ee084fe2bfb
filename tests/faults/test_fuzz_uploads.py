"""Prompt files of any bytes under any name: prompts, or what was left out and why."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from inference.prompts.prompt_files import SUFFIXES, columns_of, line_prompts, read_uploads
from inference.records.prompts import Upload, UploadSettings
from tests.faults.fuzzing import ODD_TEXTS, flipped, fuzzed, values

NAMES = (
    *("prompt", "text", "messages", "conversations", "conversation", "role", "content", "from"),
    *("value", "data", "turns", "instruction", "input", "history", "system", "question", "id"),
    *("body", "columns", "index", "schema", "fields", "context", "prompts", "rows"),
)
ENCODINGS = ("utf-8", "utf-16", "utf-32", "cp1252", "utf-8-sig", "utf-16-le")


def table() -> bytes:
    """Return a Parquet file with a column of texts and one of conversations."""
    chat = [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so"}]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"prompt": ["one", "two"], "messages": [chat, chat]}), sink)
    return sink.getvalue().to_pybytes()


TABLE = table()
PARAMETERS = st.builds(
    UploadSettings,
    separator=st.sampled_from(("", "---", "a blank line", ",")),
    column=st.sampled_from(("", "prompt", "messages", "\x00")),
    has_header=st.booleans(),
)
FILE_NAMES = st.builds(
    "{}.{}".format, st.sampled_from(("a", *ODD_TEXTS)), st.sampled_from((*SUFFIXES, "exe", "JSON"))
)


def is_read_or_left_out(file: Upload, parameters: UploadSettings) -> None:
    """Fail unless each entry of a file is a prompt that can be fed, or has a reason."""
    read = read_uploads([file], parameters)
    for left in read.left_out:
        assert left.reason.strip()
    for prompt in read.prompts:
        assert prompt.text.strip()
        prompt.text.encode()
        for role, content in prompt.turns:
            f"{role}{content}".encode()
    for note in read.notes:
        assert note.strip()
    columns_of(file, parameters)
    line_prompts(file)


@fuzzed(250)
@given(FILE_NAMES, st.binary(max_size=200), PARAMETERS)
def test_any_bytes_are_read_or_left_out(
    name: str, content: bytes, parameters: UploadSettings
) -> None:
    is_read_or_left_out(Upload(name=name, content=content), parameters)


@fuzzed(300)
@given(
    values(st.sampled_from(NAMES)),
    st.sampled_from(("json", "jsonl", "txt")),
    st.booleans(),
    PARAMETERS,
)
def test_any_json_is_read_or_left_out(
    value: Any,  # noqa: ANN401  JSON is anything
    suffix: str,
    has_lines: bool,
    parameters: UploadSettings,
) -> None:
    text = json.dumps(value)
    if has_lines:
        text = f"{text}\n{text}\n{{\n"
    is_read_or_left_out(Upload(name=f"a.{suffix}", content=text.encode()), parameters)


@fuzzed(150)
@given(
    st.lists(st.lists(st.text(max_size=8), min_size=1, max_size=4), max_size=4),
    st.sampled_from((",", ";", "\t", "|")),
    st.sampled_from(ENCODINGS),
    PARAMETERS,
)
def test_any_table_of_text_is_read_or_left_out(
    rows: list[list[str]], delimiter: str, encoding: str, parameters: UploadSettings
) -> None:
    text = "\n".join(delimiter.join(row) for row in rows)
    content = text.encode(encoding, errors="replace")
    is_read_or_left_out(Upload(name="a.csv", content=content), parameters)


@fuzzed(150)
@given(flipped(TABLE), PARAMETERS)
def test_a_damaged_parquet_file_is_read_or_left_out(
    content: bytes, parameters: UploadSettings
) -> None:
    is_read_or_left_out(Upload(name="a.parquet", content=content), parameters)
