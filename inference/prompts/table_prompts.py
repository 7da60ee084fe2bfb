"""Prompts in tables: CSV with any usual delimiter, TSV and Parquet. No torch, no pandas."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from inference.prompts.csv_rows import csv_rows
from inference.prompts.decoding import check_bytes, decoded
from inference.prompts.parquet_rows import opened, parquet_rows
from inference.prompts.records import ALTERNATING, CHATS, COMPANIONS, KEYS, prompt_of
from inference.records.errors import InputError
from inference.records.prompts import Entry, LeftOut, Upload, UploadSettings

MAX_ROWS = 100_000
LONGEST_NAME = 60  # of a column that has no usual one
SHOWN_COLUMNS = 12
# A name of a column, as opposed to a prompt in a file without a header.
LIKE_A_NAME = re.compile(r"[^\W\d]\w*([ _./-]\w+){0,2}")


def csv_columns(file: Upload, settings: UploadSettings) -> tuple[str, ...]:
    """Return the names of the columns, numbered where the file has no header.

    Raises:
        InputError: It cannot be read as CSV.
    """
    text, _ = _csv_text(file)
    first = next(csv_rows(text, file), [])
    return _names(first, has_header=_has_header(first, settings))


def csv_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompt of each row.

    Raises:
        InputError: It is no CSV, or has no such column.
    """
    text, note = _csv_text(file)
    if note:
        yield note
    rows = csv_rows(text, file)
    first = next(rows, [])
    has_header = _has_header(first, settings)
    names = _names(first, has_header=has_header)
    column = _column(names, settings, may_be_only=True)
    yield from _notes_on_columns(names, column, settings, first, has_header=has_header)
    twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if twice:
        yield f"it has several columns of the name {', '.join(twice)}; the first of them is read"
    if not has_header:
        rows = _with_first(first, rows)
    places = [(name, names.index(name)) for name in _read_columns(names, column, settings)]
    for number, row in enumerate(rows, start=1):
        place = (file.name, f"row {number}")
        if len(row) != len(names):
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            reason = f"it has {fields} where the first row has {len(names)}"
            yield LeftOut(source=place[0], place=place[1], reason=reason)
        else:
            cells = {name: row[index] or None for name, index in places}
            yield _entry(cells, column, place, settings)


def parquet_columns(file: Upload) -> tuple[str, ...]:
    """Return the names of the columns.

    Raises:
        InputError: It cannot be read as Parquet.
    """
    return tuple(opened(file).schema_arrow.names)


def parquet_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompt of each row; a column of chats holds conversations.

    Raises:
        InputError: It is no Parquet, has no such column, or the column is of no use.
    """
    table = opened(file)
    names = tuple(table.schema_arrow.names)
    column = _column(names, settings, may_be_only=False)
    columns = _read_columns(names, column, settings)
    twice = next((name for name in columns if names.count(name) > 1), None)
    if twice is not None:
        msg = f"it has {names.count(twice)} columns of the name {twice}; give each its own"
        raise InputError(msg)
    _check_type(column, table.schema_arrow.field(column).type)
    yield from _notes_on_columns(names, column, settings)
    if table.metadata.num_rows > MAX_ROWS:
        yield f"it has {table.metadata.num_rows:,} rows; the first {MAX_ROWS:,} are read"
    rows = itertools.islice(parquet_rows(file, columns), MAX_ROWS)
    for number, cells in enumerate(rows, start=1):
        if isinstance(cells, str):
            yield cells
        else:
            yield _entry(cells, column, (file.name, f"row {number}"), settings)


def _csv_text(file: Upload) -> tuple[str, str]:
    check_bytes(file)
    return decoded(file.content)


def _with_first(first: list[str], rows: Iterator[list[str]]) -> Iterator[list[str]]:
    if first:
        yield first
    yield from rows


def _has_header(first: list[str], settings: UploadSettings) -> bool:
    """Return whether the first line names the columns; of a single one it may be a prompt."""
    if not settings.has_header or len(first) != 1:
        return settings.has_header
    name = first[0].strip()
    return len(name) <= LONGEST_NAME and LIKE_A_NAME.fullmatch(name) is not None


def _names(first: list[str], *, has_header: bool) -> tuple[str, ...]:
    if has_header:
        return tuple(name.strip() for name in first)
    return tuple(f"column {number}" for number in range(1, len(first) + 1))


def _column(names: tuple[str, ...], settings: UploadSettings, *, may_be_only: bool) -> str:
    """Return the column that holds the prompts; ``may_be_only``: the only one, whatever its name.

    Raises:
        InputError: There is none of that name.
    """
    wanted = (settings.column,) if settings.column else KEYS
    small = {name.casefold(): name for name in reversed(names)}
    for name in wanted:
        if name.casefold() in small:
            return small[name.casefold()]
    if len(names) == 1 and may_be_only and not settings.column:
        return names[0]
    listed = ", ".join(name[:40] for name in names[:SHOWN_COLUMNS]) or "none"
    msg = f"it has no column {wanted[0]}; its columns are {listed}. Choose one of them as the "
    msg += "column (--column), or switch the header off (--no-header) if the first line is a prompt"
    raise InputError(msg)


def _read_columns(names: tuple[str, ...], column: str, settings: UploadSettings) -> tuple[str, ...]:
    """Return the column of the prompts and, unless it was chosen, those that belong to it."""
    beside = [one for one in names if one.casefold() in COMPANIONS and one != column]
    return (column, *(() if settings.column else dict.fromkeys(beside)))


def _notes_on_columns(
    names: tuple[str, ...],
    column: str,
    settings: UploadSettings,
    first: Sequence[str] = (),
    *,
    has_header: bool = True,
) -> Iterator[str]:
    """Yield what a reader must know of the choice of a column."""
    if settings.column:
        return
    others = [one for one in names if one.casefold() in KEYS and one != column]
    others = [one for one in others if one.casefold() not in COMPANIONS]
    if others:
        yield f"its column {column} is read, and {', '.join(others)} is not; choose another column"
    if len(names) == 1 and not has_header and settings.has_header and first:
        yield "its one column has no name, so its first line is read as a prompt too"
    elif len(names) == 1 and column.casefold() not in KEYS and has_header:
        yield f"its first line, {column!r}, is taken for the name of its one column"


def _entry(
    cells: dict[str, Any], column: str, place: tuple[str, str], settings: UploadSettings
) -> Entry:
    """Return the prompt of a row, read as the record that its cells are."""
    value = "" if cells[column] is None else cells[column]
    key = column.casefold() if column.casefold() in KEYS else KEYS[0]
    beside = {name.casefold(): cell for name, cell in cells.items() if name != column}
    chosen = UploadSettings(column=key) if settings.column else UploadSettings()
    return prompt_of({**beside, key: value}, place, chosen)


def _is_text(kind: Any) -> bool:  # noqa: ANN401  pyarrow is not typed
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _check_type(column: str, kind: Any) -> None:  # noqa: ANN401  pyarrow is not typed
    """Raise InputError unless the column holds text, or lists, which may be chats.

    Raises:
        InputError: The column holds something else.
    """
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_list = types.is_list(kind) or types.is_large_list(kind)
    may_take_turns = column.casefold() in CHATS | ALTERNATING
    is_chat = is_list and (
        types.is_struct(kind.value_type) or (may_take_turns and _is_text(kind.value_type))
    )
    if not (_is_text(kind) or is_chat):
        msg = f"its column {column} holds {kind}, no text; choose another column"
        raise InputError(msg)
