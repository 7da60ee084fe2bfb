"""Prompts in tables: CSV with any usual delimiter, TSV and Parquet. No torch, no pandas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from inference.prompts.decoding import check_bytes, decoded
from inference.prompts.json_prompts import KEYS, prompt_of
from inference.records.errors import InputError, first_line
from inference.records.prompts import Entry, LeftOut, Upload, UploadedPrompt, UploadSettings

SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?\r?\n', re.IGNORECASE)
DELIMITERS = ",;\t|"
MAX_FIELD = 50 * 2**20
MAX_ROWS = 100_000
SAMPLE = 64 * 1024
SHOWN_COLUMNS = 12
LONGEST_REASON = 160


def csv_columns(file: Upload, settings: UploadSettings) -> tuple[str, ...]:
    """Return the names of the columns, numbered where the file has no header.

    Raises:
        InputError: It cannot be read as CSV.
    """
    text, _ = _csv_text(file)
    first = next(_csv_rows(text, file), [])
    return _names(first, has_header=settings.has_header)


def csv_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompt of each row.

    Raises:
        InputError: It is no CSV, or has no such column.
    """
    text, note = _csv_text(file)
    if note:
        yield note
    rows = _csv_rows(text, file)
    first = next(rows, [])
    names = _names(first, has_header=settings.has_header)
    column = _column(names, settings)
    if not settings.has_header:
        rows = iter([first, *rows])
    for number, row in enumerate(rows, start=1):
        place = (file.name, f"row {number}")
        if len(row) == len(names) + 1 and not row[-1].strip():
            row = row[:-1]  # the row ends with a delimiter, the header does not  # noqa: PLW2901
        if len(row) != len(names):
            reason = f"it has {len(row)} fields where the first row has {len(names)}"
            yield LeftOut(source=place[0], place=place[1], reason=reason)
        else:
            yield UploadedPrompt(source=place[0], place=place[1], text=row[names.index(column)])


def parquet_columns(file: Upload) -> tuple[str, ...]:
    """Return the names of the columns.

    Raises:
        InputError: It cannot be read as Parquet.
    """
    return tuple(_parquet(file).schema_arrow.names)


def parquet_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompt of each row; a column of chats holds conversations.

    Raises:
        InputError: It is no Parquet, has no such column, or the column is of no use.
    """
    table = _parquet(file)
    names = tuple(table.schema_arrow.names)
    column = _column(names, settings)
    _check_type(column, table.schema_arrow.field(column).type)
    if table.metadata.num_rows > MAX_ROWS:
        yield f"it has {table.metadata.num_rows:,} rows; the first {MAX_ROWS:,} are read"
    number = 0
    try:
        for batch in table.iter_batches(batch_size=1000, columns=[column]):
            for value in batch.column(0).to_pylist():
                number += 1
                if number > MAX_ROWS:
                    return
                yield prompt_of(
                    "" if value is None else value, (file.name, f"row {number}"), settings
                )
    except (pa.ArrowException, OSError) as error:
        msg = (
            f"it is damaged after row {number}: {first_line(error)[:LONGEST_REASON]}; make it again"
        )
        raise InputError(msg) from error


def _csv_text(file: Upload) -> tuple[str, str]:
    check_bytes(file)
    return decoded(file.content)


def _csv_rows(text: str, file: Upload) -> Iterator[list[str]]:
    """Yield the rows that are not blank; fields may hold quotes and line breaks."""
    csv.field_size_limit(MAX_FIELD)
    text = text.removeprefix("\ufeff")
    named = SEPARATOR_LINE.match(text)  # Excel's own way to name the delimiter
    delimiter = named.group(1) if named else _delimiter(text, file)
    text = text[named.end() :] if named else text
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        strict=True,
    )
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield row
    except csv.Error as error:
        msg = f"it is no proper CSV: {error} near line {reader.line_num}; check the quotes there"
        raise InputError(msg) from error


def _delimiter(text: str, file: Upload) -> str:
    """Return what separates the fields of the first line."""
    if file.suffix == "tsv":
        return "\t"
    first = text[:SAMPLE].lstrip().partition("\n")[0]
    unquoted = "".join(first.split('"')[::2])
    return max(DELIMITERS, key=unquoted.count) if any(d in unquoted for d in DELIMITERS) else ","


def _names(first: list[str], *, has_header: bool) -> tuple[str, ...]:
    if has_header:
        return tuple(name.strip() for name in first)
    return tuple(f"column {number}" for number in range(1, len(first) + 1))


def _column(names: tuple[str, ...], settings: UploadSettings) -> str:
    """Return the column that holds the prompts.

    Raises:
        InputError: There is none of that name.
    """
    wanted = (settings.column,) if settings.column else KEYS
    small = {name.casefold(): name for name in reversed(names)}
    for name in wanted:
        if name.casefold() in small:
            return small[name.casefold()]
    if len(names) == 1 and not settings.has_header:
        return names[0]
    listed = ", ".join(name[:40] for name in names[:SHOWN_COLUMNS]) or "none"
    msg = f"it has no column {wanted[0]}; its columns are {listed}. Choose one of them as the "
    msg += "column, or switch the header off if the first line is a prompt already"
    raise InputError(msg)


def _parquet(file: Upload) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(pa.BufferReader(file.content))
    except (pa.ArrowException, OSError) as error:
        msg = (
            f"it is no Parquet file or damaged: {first_line(error)[:LONGEST_REASON]}; make it again"
        )
        raise InputError(msg) from error


def _check_type(column: str, kind: Any) -> None:  # noqa: ANN401  pyarrow is not typed
    """Raise InputError unless the column holds text, or lists, which may be chats.

    Raises:
        InputError: The column holds something else.
    """
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_chat = (types.is_list(kind) or types.is_large_list(kind)) and types.is_struct(
        kind.value_type
    )
    if not (is_text or is_chat):
        msg = f"its column {column} holds {kind}, no text; choose another column"
        raise InputError(msg)
