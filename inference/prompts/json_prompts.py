"""Prompts in JSON: a list, an object around one, pandas' tables, or one value a line. No torch.

What one record holds is read in ``records``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from inference.prompts.conversations import is_chat, kind_of
from inference.prompts.decoding import check_bytes, decoded
from inference.prompts.orients import records_of_table
from inference.prompts.records import CHATS, is_message, keys_in, prompts_of, with_usual_names
from inference.records.errors import InputError
from inference.records.prompts import Entry, LeftOut, Upload, UploadSettings

LISTS = ("data", "prompts", "rows", "examples", "instances", "items", "questions")
# Beside these an object's ``data`` is one conversation and not a list of records.
NAMES_OF_ONE = ("id", "conversation_id", "uuid")
MOST_VALUES = 2**22  # of one JSON text: parsed, each takes up to a hundred bytes
MOST_LINES = 2**20
BLANKS = " \t\r\n"  # between the values of JSON
LONGEST_NUMBER = sys.int_info.default_max_str_digits
TOO_LONG_A_NUMBER = f"it holds a number of more than {LONGEST_NUMBER:,} digits; write it as text"
TOO_DEEP = "its lists and objects are nested too deep to be read; flatten it"


def json_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of a JSON file: of a list, one an element.

    Raises:
        InputError: It is no JSON, or holds nothing that could be a prompt.
    """
    check_bytes(file)
    text, note = decoded(file.content)
    if note:
        yield note
    try:
        value = _parsed(text)
    except InputError:
        yield from _several_entries(text, file, settings)
        return
    yield from _value_entries(value, file, settings)


def json_lines_entries(file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of a file with one JSON value a line; a bad line leaves the others alone.

    Raises:
        InputError: It is no text.
    """
    check_bytes(file)
    text, note = decoded(file.content)
    if note:
        yield note
    values = None if _begins_with_a_whole_line(text) else _values(text)
    if values is None:
        yield from _line_entries(text, file, settings)
    elif len(values) == 1:
        kind = "list" if isinstance(values[0], list) else "value"
        yield f"it holds one JSON {kind} and not one value a line, and was read so"
        yield from _value_entries(values[0], file, settings)
    else:
        yield from _entries_of_values(values, file, settings)


def _value_entries(value: object, file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of the one value that a file is."""
    elements, note = _listed(value, settings)
    if note:
        yield note
    for number, element in enumerate(elements, start=1):
        yield from prompts_of(element, (file.name, f"item {number}"), settings)


def _several_entries(text: str, file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    """Yield the prompts of a file that is not one JSON value: one a line, or one after another.

    Raises:
        InputError: It is no JSON of these kinds either.
    """
    if _is_json_lines(text):
        yield "it holds one JSON value a line (JSON Lines), and was read so"
        yield from _line_entries(text, file, settings)
        return
    values = _values(text)
    if values is None:
        _parsed(text)  # which says what is wrong
        return
    yield from _entries_of_values(values, file, settings)


def _entries_of_values(
    values: list[Any], file: Upload, settings: UploadSettings
) -> Iterator[Entry]:
    yield f"it holds {len(values):,} JSON values one after another, and was read so"
    for number, value in enumerate(values, start=1):
        yield from prompts_of(value, (file.name, f"value {number}"), settings)


def _values(text: str) -> list[Any] | None:
    """Return JSON values that stand one after another; None where one of them is broken."""
    _check_count(text)
    decoder = json.JSONDecoder()
    values: list[Any] = []
    at = len(text) - len(text.lstrip(BLANKS + "\ufeff"))
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            while text[at : at + 1] and text[at] in BLANKS:
                at += 1
            if len(values) > MOST_LINES:
                msg = f"it holds more than {MOST_LINES:,} values; cut it into parts"
                raise InputError(msg)
    except (ValueError, RecursionError):
        return None
    return values or None


def _listed(value: object, settings: UploadSettings) -> tuple[list[Any], str]:
    """Return the elements of a JSON file, whatever stands around them, and a note."""
    note = ""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value, note = _parsed(value), "it holds JSON inside a string, and was read so"
        except InputError:
            note = ""  # a text that begins with a bracket
    if isinstance(value, dict):
        value = with_usual_names(value)
        table = records_of_table(value, settings)
        if table is not None:
            return table
        value = _inner_list(value, settings)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        msg = f"it holds {kind_of(value)} where a list of prompts was expected"
        raise InputError(msg)
    if is_chat(value):
        value = [{"messages": value}]
    return value, note


def _inner_list(value: dict[str, Any], settings: UploadSettings) -> list[Any]:
    """Return the records that an object stands around; itself where it is one record."""
    keys = [key for key in keys_in(value, settings) if key != "data"]
    named = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
    if named is not None and not keys and not _is_one_dialogue(value):
        return named
    inner = value.get(keys[0]) if keys and keys[0] in CHATS else None
    is_list_of_records = isinstance(inner, list) and all(
        isinstance(one, dict) and not is_message(one) and keys_in(one, settings) for one in inner
    )
    return inner if inner and is_list_of_records else [value]


def _is_one_dialogue(value: dict[str, Any]) -> bool:
    """Return whether ``data`` holds the texts of one conversation, in which two take turns."""
    data = value.get("data")
    is_of_texts = isinstance(data, list) and all(isinstance(one, str) for one in data)
    return is_of_texts and any(name in value for name in NAMES_OF_ONE)


def _is_json_lines(text: str) -> bool:
    """Tell whether the first line that is not blank is a whole JSON value, and not the only one."""
    return sum(bool(line.strip()) for line in text.split("\n", 50)) > 1 and (
        _begins_with_a_whole_line(text)
    )


def _begins_with_a_whole_line(text: str) -> bool:
    first = text.lstrip(BLANKS + "\ufeff").partition("\n")[0]
    try:
        _parsed(first)
    except InputError:
        return False
    return True


def _line_entries(text: str, file: Upload, settings: UploadSettings) -> Iterator[Entry]:
    lines = text.count("\n")
    if lines > MOST_LINES:
        msg = f"it has {lines:,} lines and {MOST_LINES:,} are the most; cut it into parts"
        raise InputError(msg)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = (file.name, f"line {number}")
        try:
            value = _parsed(line, is_line=True)
        except InputError as error:
            values = _values(line)
            if values is None:
                yield LeftOut(source=place[0], place=place[1], reason=str(error))
                continue
            for part, one in enumerate(values, start=1):
                yield from prompts_of(one, (place[0], f"{place[1]}, value {part}"), settings)
            continue
        yield from prompts_of(value, place, settings)


def _parsed(text: str, *, is_line: bool = False) -> Any:  # noqa: ANN401  JSON is anything
    _check_count(text)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise InputError(TOO_DEEP) from error
    except json.JSONDecodeError as error:
        where = "" if is_line else f" in line {error.lineno}"  # an entry's place says which line
        msg = f"not valid JSON: {error.msg.lower()}{where}; check its quotes and commas"
        raise InputError(msg) from error
    except ValueError as error:  # Python reads no longer ones
        raise InputError(TOO_LONG_A_NUMBER) from error


def _check_count(text: str) -> None:
    """Raise InputError where a text holds more values than are read.

    Raises:
        InputError: It does.
    """
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MOST_VALUES:
        msg = f"it holds {values:,} values and {MOST_VALUES:,} are the most; cut it into parts"
        raise InputError(msg)
