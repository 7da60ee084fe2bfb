"""JSON that others made, one value at a time: what is not of the kind that is wanted is None.

Texts come out as the bytes that the engine meant, halves of characters included.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

LARGEST_COUNT = 2**53
# Characters beyond U+FFFF may be written as two escapes, and a stream may be cut between them.
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LONELY = re.compile("[\ud800-\udc7f\udd00-\udfff]")
HIGH_HALF = re.compile("[\ud800-\udbff]$")


class NotJsonError(Exception):
    """Content that is no JSON object."""


def object_in(content: bytes) -> dict[str, Any]:
    """Return the JSON object in a text; bytes that are no UTF-8 stay in it as lone surrogates.

    Raises:
        NotJsonError: It is cut, nested beyond all reason, or something else.
    """
    text = content.decode("utf-8", "surrogateescape")
    try:
        value = json.loads(text, parse_constant=lambda _name: None)
    except (ValueError, RecursionError) as error:
        raise NotJsonError from error
    if not isinstance(value, dict):
        raise NotJsonError
    return value


def text_bytes(text: str) -> bytes:
    """Return a text of :func:`object_in` as bytes: what was no UTF-8 comes out as it came in."""
    if text.isascii():
        return text.encode()
    paired = PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return LONELY.sub("\ufffd", paired).encode("utf-8", "surrogateescape")


def count_in(value: dict[str, Any], name: str) -> int | None:
    """Return a count; None where there is none that could be right."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 <= found <= LARGEST_COUNT else None


def number_in(value: dict[str, Any], name: str) -> float | None:
    """Return a finite number; None where there is none."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        number = float(found)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def text_in(value: dict[str, Any], name: str) -> str:
    """Return a text; empty where there is none."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def name_in(value: dict[str, Any], name: str) -> str:
    """Return a text that is kept as a text, half characters in it replaced; empty for none."""
    return text_bytes(text_in(value, name)).decode("utf-8", "replace")


def object_at(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object inside; an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def objects_at(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list inside; none where there is no list."""
    found = value.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def bytes_at(value: dict[str, Any], name: str) -> bytes | None:
    """Return a list of byte values as bytes; None where there is none."""
    found = value.get(name)
    if not isinstance(found, list):
        return None
    try:
        return bytes(found)
    except (TypeError, ValueError):
        return None


def ids_at(value: dict[str, Any], name: str) -> tuple[int, ...]:
    """Return a list of token ids; empty where it is none throughout."""
    found = value.get(name)
    if not isinstance(found, list):
        return ()
    ids = tuple(one for one in found if isinstance(one, int) and not isinstance(one, bool))
    is_whole = len(ids) == len(found) and all(0 <= one <= LARGEST_COUNT for one in ids)
    return ids if is_whole else ()
