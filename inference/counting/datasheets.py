"""What vendors state for their parts: dense peaks, bandwidth, memory, with document and date.

The figures stand in ``parts.py`` and the files that it lists. A part is found by its exact names,
never by a piece of one: that would give an 80 GB card the bandwidth of the 40 GB one. Two rates
given in place of a name serve for anything else. No torch.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite

from inference.counting.parts import PARTS
from inference.records.block_formats import COMPUTED_IN, block_format_of
from inference.records.costs import Ceilings, Source
from inference.records.errors import InputError
from inference.records.rooflines import Datasheet, EnteredCeilings

SEPARATORS = re.compile(r"[^0-9a-z]+")


def find_datasheet(name: str) -> Datasheet | None:
    """Return the sheet of the part of exactly this name, case and punctuation left aside."""
    wanted = _key(name)
    return next((part for part in PARTS if wanted in {_key(one) for one in part.aliases}), None)


def datasheet_ceilings(sheet: Datasheet, dtype: str) -> Ceilings:
    """Return the vendor's two rates for a dtype; weights in blocks are computed with in float32.

    Raises:
        InputError: If the vendor states none for it.
    """
    peaks = dict(sheet.peaks)
    if block_format_of(dtype) is not None:
        dtype = COMPUTED_IN
    if dtype not in peaks:
        bandwidth = f"{sheet.bytes_per_s / 1e9:g}e9"
        stated = ", ".join(peaks) or f"a bandwidth of {bandwidth} bytes/s"
        msg = (
            f"the data sheet of {sheet.name} states no {dtype} matrix rate, only {stated}; give "
            "your own two rates instead, FLOP/s and bytes/s: on the page choose the device with "
            f"your own rates, on the command line write them as FLOP/s:{bandwidth}"
        )
        raise InputError(msg)
    reading = f"read {sheet.read_on.isoformat()}" if sheet.is_confirmed else "not confirmed"
    return Ceilings(
        flops_per_s=peaks[dtype],
        bytes_per_s=sheet.bytes_per_s,
        source=Source.DATASHEET,
        method=f"{sheet.document}: dense {dtype}, {reading}",
    )


def entered_ceilings(flops_per_s: float, bytes_per_s: float, device: str = "") -> Ceilings:
    """Return two rates that a user gives.

    Args:
        flops_per_s: Of matrix products.
        bytes_per_s: Of memory.
        device: What the user calls it.

    Raises:
        InputError: One of them is no rate.
    """
    if not all(isfinite(rate) and rate > 0 for rate in (flops_per_s, bytes_per_s)):
        msg = f"the rates {flops_per_s} and {bytes_per_s} must be finite and above zero, such as "
        raise InputError(f"{msg}989e12:3.35e12")
    named = f"{device.strip()}: " if device.strip() else ""
    return EnteredCeilings(
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        source=Source.COUNTED,  # of no clock and no vendor; ``roof_tag`` names them
        method=f"{named}two rates given by the user",
    )


def with_entered_rate(sheet: Datasheet, flops_per_s: float) -> Ceilings:
    """Return a vendor's bandwidth beside a rate of matrix products that a user gives.

    Raises:
        InputError: It is no rate.
    """
    entered = entered_ceilings(flops_per_s, sheet.bytes_per_s)
    method = f"{sheet.document}: bandwidth; FLOP/s given by the user"
    return replace(entered, method=method)


def device_ceilings(device: str, dtype: str) -> Ceilings:
    """Return the roofs that a name or two rates stand for.

    Args:
        device: A part's name, or ``FLOP/s:bytes/s`` such as ``989e12:3.35e12``.
        dtype: The dtype whose peak is wanted; two given rates stand for any.

    Raises:
        InputError: If no part has that name or no rate for the dtype, or a given rate is no rate.
    """
    if ":" in device:
        return _given_ceilings(device)
    sheet = find_datasheet(device)
    if sheet is None:
        names = ", ".join(part.name for part in PARTS)
        msg = (
            f"no data sheet for {device!r}; give one of {names}, "
            "or two rates, FLOP/s and bytes/s, such as 989e12:3.35e12"
        )
        raise InputError(msg)
    return datasheet_ceilings(sheet, dtype)


def device_memory_bytes(device: str) -> int | None:
    """Return the memory of the part of that name; None where it is not known."""
    sheet = None if ":" in device else find_datasheet(device)
    return sheet.memory_bytes if sheet else None


def _given_ceilings(text: str) -> Ceilings:
    flops, _, moved = text.partition(":")
    try:
        rates = (float(flops), float(moved))
    except ValueError as error:
        msg = f"{text!r} is not two rates; write FLOP/s and bytes/s, such as 989e12:3.35e12"
        raise InputError(msg) from error
    return entered_ceilings(*rates)


def _key(name: str) -> str:
    return SEPARATORS.sub("", name.lower())
