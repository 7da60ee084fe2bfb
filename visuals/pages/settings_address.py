"""The settings of a run in the page's address, for reloads and links. No Streamlit.

The address says only what differs from the settings that the page would begin with: those of the
run shown, else the defaults. It is read once, when a tab's session begins; what it says that a
widget could not is left out, as is a prompt too long for an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from math import isfinite
from typing import Any

from inference.engine.scheduler import MAX_ROWS
from inference.records.block_formats import BlockFormat
from visuals.pages.run_settings import RunSettings

# Source: our own choice. Browsers and proxies take at least 8,000 characters, encoded.
LONGEST_TEXT = 1000
BOUNDS: dict[str, tuple[float, float]] = {  # of the widgets that show these fields
    "max_new_tokens": (1, 4096),
    "temperature": (0.05, 2.0),
    "top_k": (0, 1000),
    "top_p": (0.05, 1.0),
    "seed": (0, 2**31 - 1),
    "chunk_tokens": (0, 1 << 20),
    "batch_count": (2, MAX_ROWS),
    "batch_slots": (0, MAX_ROWS),
    "batch_gap_s": (0.0, 60.0),
    "batch_chunk_tokens": (0, 1 << 16),
}
NAMES = tuple(field.name for field in fields(RunSettings))
_DTYPES = ("auto", "float32", "bfloat16", "float16", *BlockFormat)
_SWITCH = {True: "on", False: "off"}


def said_of(settings: RunSettings, usual: RunSettings) -> dict[str, str]:
    """Return the parameters of an address that say how settings differ from the usual ones."""
    values = {name: (getattr(settings, name), getattr(usual, name)) for name in NAMES}
    said = {name: _text(value) for name, (value, other) in values.items() if value != other}
    return {name: text for name, text in said.items() if len(text) <= LONGEST_TEXT}


def settings_said(said: Mapping[str, str], usual: RunSettings) -> RunSettings:
    """Return the usual settings with what an address says; what no widget could say is left out."""
    taken: dict[str, Any] = {}
    for name in NAMES:
        value = _value(said[name], name, getattr(usual, name)) if name in said else None
        if value is not None:
            taken[name] = value
    return replace(usual, **taken)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return _SWITCH[value]
    if isinstance(value, Enum):
        return value.name.lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _value(text: str, name: str, usual: object) -> object:
    """Return what a text says, as a value of the kind of the usual one; None for nothing."""
    if len(text) > LONGEST_TEXT:
        return None
    if isinstance(usual, bool):
        return {word: value for value, word in _SWITCH.items()}.get(text)
    if isinstance(usual, Enum):
        return next((one for one in type(usual) if one.name.lower() == text), None)
    if isinstance(usual, (int, float)):
        return _number(text, name, type(usual))
    return None if name == "dtype" and text not in _DTYPES else text


def _number(text: str, name: str, kind: type[int] | type[float]) -> float | None:
    try:
        number = kind(text)
    except ValueError:
        return None
    low, high = BOUNDS[name]
    return number if isfinite(number) and low <= number <= high else None
