"""The only unit conversions, and how a number is written for a reader.

Rates are decimal, capacity is binary (MiB = 2**20 bytes). None stays None in data and is written
as a dash. No torch.
"""

from __future__ import annotations

from datetime import datetime
from math import floor, isfinite, log10

DASH = "\u2013"
DECIMAL_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
ROUNDS_UP = 0.9995  # from here on three digits read as the next prefix's 1.00


def milliseconds(seconds: float | None) -> float | None:
    """Return milliseconds, to a tenth of a microsecond."""
    return None if seconds is None else round(seconds * 1e3, 4)


def mebibytes(count: float | None) -> float | None:
    """Return MiB of a number of bytes."""
    return None if count is None else round(count / 2**20, 6)


def gibibytes(count: float | None) -> float | None:
    """Return GiB of a number of bytes."""
    return None if count is None else round(count / 2**30, 6)


def percent(ratio: float | None) -> float | None:
    """Return a ratio of 0 to 1 in percent, to a tenth."""
    return None if ratio is None else round(ratio * 100, 1)


def share(ratio: float | None) -> str:
    """Return a ratio of 0 to 1 in percent with three significant digits, or a dash."""
    return DASH if ratio is None else amount(ratio * 100, "%")


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with three significant digits, thousands separated, or a dash for None."""
    if value is None or not isfinite(value):
        return DASH
    if value == 0:
        return "0"
    places = digits - 1 - floor(log10(abs(value)))
    rounded = round(value, places)
    if abs(rounded) >= 10 ** (digits - places):  # 9.996 has become 10.00
        places -= 1
    return f"{rounded:,.{max(places, 0)}f}"


def amount(value: float | None, unit: str) -> str:
    """Return a number with its unit, or a dash alone."""
    text = significant(value)
    return text if text == DASH else f"{text}\u00a0{unit}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a whole number and its noun; a plural that does not end in s is given."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def scaled(value: float | None, unit: str) -> str:
    """Return a number with its unit and the decimal prefix it needs, such as ``20.4 GB/s``."""
    if value is None or not isfinite(value):
        return DASH
    for factor, prefix in DECIMAL_PREFIXES:
        if abs(value) >= factor * ROUNDS_UP:
            return amount(value / factor, f"{prefix}{unit}")
    return amount(value, unit)


def flop_text(count: float) -> str:
    """Return a number of operations."""
    return scaled(count, "FLOP")


def byte_text(count: float) -> str:
    """Return bytes moved, which are decimal as rates are."""
    return scaled(count, "B")


def capacity(count: float | None) -> str:
    """Return bytes of memory in MiB, and from half a GiB on in GiB."""
    if count is not None and count < 2**29:
        return amount(mebibytes(count), "MiB")
    return amount(gibibytes(count), "GiB")


def date_text(moment: datetime) -> str:
    """Return the day of a moment as people read it, such as ``29 November 2026``."""
    return f"{moment.day} {moment:%B %Y}"
