"""The rows of a CSV file as people's programs write it. No torch, no pandas.

Delimiters of any usual kind, Excel's ``sep=`` line, rows that end with a delimiter, one column.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from inference.records.errors import InputError
from inference.records.prompts import Upload

SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?(?:\r\n|\n|\r|$)', re.IGNORECASE)
LINE_END = re.compile(r"\r\n|\n|\r")
DELIMITERS = ",;\t|"
NO_DELIMITER = "\x1f"  # the unit separator, which no text has
MAX_FIELD = 50 * 2**20
SAMPLE = 64 * 1024


def csv_rows(text: str, file: Upload) -> Iterator[list[str]]:
    """Yield the rows that are not blank; fields may hold quotes and line breaks.

    Raises:
        InputError: A quote is not closed.
    """
    csv.field_size_limit(MAX_FIELD)
    text = text.removeprefix("\ufeff")
    named = SEPARATOR_LINE.match(text)  # Excel's own way to name the delimiter
    text = text[named.end() :] if named else text
    delimiter = named.group(1) if named else _delimiter(text, file)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = 0
    try:
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            width = width or _width(row)
            yield _fitted(row, width)
    except csv.Error as error:
        msg = f"it is no proper CSV: {error} near line {reader.line_num}; check the quotes there"
        raise InputError(msg) from error


def _width(first: list[str]) -> int:
    """Return the fields of the first row, without the empty ones at its end."""
    return max(number for number, field in enumerate(first, start=1) if field.strip())


def _fitted(row: list[str], width: int) -> list[str]:
    """Return the row without the empty fields that delimiters at its end make."""
    while len(row) > width and not row[-1].strip():
        row = row[:-1]
    return row


def _delimiter(text: str, file: Upload) -> str:
    """Return what separates the fields of the first line; of one column, what ends its rows."""
    first = LINE_END.split(text[:SAMPLE].lstrip(), maxsplit=1)[0]
    unquoted = "".join(first.split('"')[::2])
    if file.suffix == "tsv" and "\t" in unquoted:
        return "\t"
    if any(d in unquoted for d in DELIMITERS):
        return max(DELIMITERS, key=unquoted.count)
    ends = [one for one in DELIMITERS if _ends_rows(text, one)]
    return ends[0] if ends else NO_DELIMITER


def _ends_rows(text: str, delimiter: str) -> bool:
    """Return whether a delimiter ends each of the first rows below the first, and parts nothing."""
    sample = text[:SAMPLE]
    is_cut = len(sample) < len(text)
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter))
    except csv.Error:
        return False
    below = [row for row in (rows[1:-1] if is_cut else rows[1:]) if any(one.strip() for one in row)]
    return bool(below) and all(
        len(row) > 1 and not any(one.strip() for one in row[1:]) for row in below
    )
