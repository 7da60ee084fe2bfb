"""Validators for files from others: strict, ended by the first thing wrong, and bounded in numbers.

Pydantic collects an error for each element that is wrong, so a small file of a hundred million of
them takes tens of gigabytes. Here a sequence ends with its first. No torch.
"""

from __future__ import annotations

from typing import Any

from pydantic import RootModel
from pydantic_core import SchemaValidator

from inference.records.errors import RunFileError

# Values in a text, before any of them is built: one may take 200 bytes. A run file has names in
# every object, which makes 8 bytes a value and more; a small one may be mostly the ids of a prompt.
MAX_VALUES = 2**24
ALWAYS_VALUES = 2**22
LEAST_BYTES = 8
# Sums and squares of these stay finite, and no count or rate of any machine comes near.
LARGEST_FLOAT = 1e24
LARGEST_INT = 10**40
SEQUENCES = ("list", "tuple", "set", "frozenset")


def check_values(text: bytes) -> None:
    """Raise RunFileError where a text of JSON holds more values than any run has.

    Commas inside of strings count too, which refuses no run but one of a prompt like that.
    """
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if values > min(MAX_VALUES, max(ALWAYS_VALUES, len(text) // LEAST_BYTES)):
        msg = (
            f"the run file holds {values:,} values, more than a run of its size has; open one that "
        )
        msg += "was saved here"
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
