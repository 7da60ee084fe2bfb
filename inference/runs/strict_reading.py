"""Files from others: bounded in size and numbers, strict, and ended by the first thing wrong.

Pydantic collects an error for each element that is wrong, so a small file of a hundred million of
them takes tens of gigabytes. Here a sequence ends with its first. No torch.
"""

from __future__ import annotations

import zlib
from typing import Any

from pydantic import RootModel
from pydantic_core import SchemaValidator

from inference.models.process_memory import MEMORY_VARIABLE, room_bytes
from inference.records.errors import RunFileError

# Values in a text, before any of them is built: one may take VALUE_BYTES. A run file has names in
# every object, which makes 8 bytes a value and more; a small one may be mostly the ids of a prompt.
MAX_VALUES = 2**24
ALWAYS_VALUES = 2**22
LEAST_BYTES = 8
VALUE_BYTES = 200
# Sums and squares of these stay finite, and no count or rate of any machine comes near.
LARGEST_FLOAT = 1e24
LARGEST_INT = 10**40
GZIP_MAGIC = b"\x1f\x8b"
SEQUENCES = ("list", "tuple", "set", "frozenset")


def file_text(content: bytes, what: str, most_bytes: int) -> bytes:
    """Return the text of a file, unpacked where it is compressed.

    Args:
        content: All of the file.
        what: The file as sentences call it.
        most_bytes: That its text may have.

    Raises:
        RunFileError: It is too large, or its compression is broken.
    """
    is_packed = content.startswith(GZIP_MAGIC)
    text = _unpacked(content, what, most_bytes) if is_packed else content
    if len(text) > most_bytes:
        msg = f"the {what} is larger than {most_bytes >> 20} MiB; save fewer runs in one"
        raise RunFileError(msg)
    return text.removeprefix(b"\xef\xbb\xbf").strip()


def check_values(text: bytes, what: str = "run file") -> None:
    """Raise RunFileError where a text of JSON holds more values than any run has.

    Commas inside of strings count too, which refuses no run but one of a prompt like that.
    """
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if values > min(MAX_VALUES, max(ALWAYS_VALUES, len(text) // LEAST_BYTES)):
        msg = f"the {what} holds {values:,} values, more than a run of its size has; open one that "
        msg += "was saved here"
        raise RunFileError(msg)
    room = room_bytes()
    if room is not None and values * VALUE_BYTES > room:
        msg = f"the run file holds {values:,} values, which take up to "
        msg += f"{values * VALUE_BYTES / 1e9:.1f} GB to read, and {room / 1e9:.1f} GB are left of "
        msg += f"what {MEMORY_VARIABLE} allows; save fewer runs in one file"
        raise RunFileError(msg)


def strict_validator(model: type[RootModel[Any]]) -> SchemaValidator:
    """Return the validator of what a model holds, with the bounds of this file.

    Without the model around it, since pydantic would take the validator that the class has already.
    """
    schema: Any = model.__pydantic_core_schema__
    definitions = schema.get("definitions") if schema["type"] == "definitions" else None
    outer = schema["schema"] if definitions is not None else schema
    inner: Any = _bounded(outer["schema"])
    if definitions is not None:
        inner = {"type": "definitions", "schema": inner, "definitions": _bounded(definitions)}
    return SchemaValidator(inner, outer["config"])


def _bounded(schema: Any) -> Any:  # noqa: ANN401  pydantic's own schemas are dictionaries
    """Return a core schema in which sequences end early and numbers have bounds."""
    if isinstance(schema, list):
        return [_bounded(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {
        key: value if key == "metadata" else _bounded(value) for key, value in schema.items()
    }
    kind = schema.get("type")
    if kind in SEQUENCES:
        bounded["fail_fast"] = True
    elif kind == "float":
        bounded |= {"ge": -LARGEST_FLOAT, "le": LARGEST_FLOAT}
    elif kind == "int":
        bounded |= {"ge": -LARGEST_INT, "le": LARGEST_INT}
    return bounded


def _unpacked(content: bytes, what: str, most_bytes: int) -> bytes:
    """Return at most one byte more than the cap, so that a small bomb stays small."""
    try:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unpacker.decompress(content, most_bytes + 1)
    except zlib.error as error:
        msg = f"the {what} is damaged: its compression is broken; copy it again"
        raise RunFileError(msg) from error
    if not unpacker.eof and len(text) <= most_bytes:
        msg = f"the {what} is cut short: its compressed end is missing; copy it again"
        raise RunFileError(msg)
    return text
