"""The tables that pandas writes as JSON, in each of its orients, turned into records. No torch.

Source:
    pandas, ``DataFrame.to_json``: records, split, index, columns, values, table; and ``to_dict``
    with lists.
"""

from __future__ import annotations

from typing import Any

from inference.prompts.conversations import is_chat
from inference.prompts.records import CHATS, keys_in
from inference.records.prompts import UploadSettings


def records_of_table(
    value: dict[str, Any], settings: UploadSettings
) -> tuple[list[Any], str] | None:
    """Return the records of an object that is a table, and a note; None where it is none."""
    columns, rows = value.get("columns"), value.get("data")
    if isinstance(columns, list) and isinstance(rows, list) and _are_lists(rows):
        names = [str(name) for name in columns]
        records = [dict(zip(names, row, strict=False)) for row in rows]
        return records, _note("split")
    inner = list(value.values())
    if inner and all(isinstance(one, dict) for one in inner):
        if keys_in(value, settings):
            return _by_index(value), _note("columns")
        if "body" not in value and any(keys_in(one, settings) for one in inner):
            return inner, _note("index")
    if inner and all(is_chat(one) for one in inner) and not keys_in(value, settings):
        return inner, "it holds conversations by name, and each was read"
    if _is_table_of_lists(value, settings):
        names = list(value)
        return [dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True)], _note(
            "list"
        )
    return None


def _are_lists(rows: list[object]) -> bool:
    return all(isinstance(row, list) for row in rows)


def _by_index(columns: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of columns that are objects from a row's index to its value."""
    rows = dict.fromkeys(index for column in columns.values() for index in column)
    return [{name: column.get(index) for name, column in columns.items()} for index in rows]


def _is_table_of_lists(value: dict[str, Any], settings: UploadSettings) -> bool:
    lengths = {len(one) for one in value.values() if isinstance(one, list)}
    if len(lengths) != 1 or not _are_lists(list(value.values())):
        return False
    keys = keys_in(value, settings)
    return bool(keys) and keys[0] not in CHATS and keys[0] != "data"


def _note(orient: str) -> str:
    return f"it is a table as pandas writes it (orient='{orient}'), and was read by rows"
