"""The choice of a device that something is counted on: a part, this machine, or one's own rates."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inference.counting.datasheets import (
    datasheet_ceilings,
    entered_ceilings,
    find_datasheet,
    with_entered_rate,
)
from inference.counting.parts import PARTS
from inference.records.costs import Ceilings
from inference.records.errors import TokenByTokenError
from inference.records.rooflines import Datasheet
from visuals.live.hub import Hub
from visuals.pages.markdown import escaped
from visuals.pages.session import bound

OWN_RATES = "a device of my own \u2026"
THIS_MACHINE = "this machine, measured"
TERA, GIGA, GIBI = 1e12, 1e9, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDevice:
    """A device's roofs, and its memory where that is known."""

    ceilings: Ceilings
    memory_bytes: int | None


def device_choice(hub: Hub, dtype: str, prefix: str) -> ChosenDevice | None:
    """Draw the choice; None where the device has no roofs for the dtype, and the page says why.

    Args:
        hub: Knows what was measured here.
        dtype: The number format whose peak is wanted.
        prefix: Of the widgets' keys.
    """
    measured = hub.measure_status().ceilings
    own = [*([THIS_MACHINE] if measured is not None else []), OWN_RATES]
    names = [*own, *(part.name for part in PARTS)]
    name = st.selectbox("Device", names, **bound(f"{prefix}-device", names)) or names[0]
    if name == THIS_MACHINE and measured is not None:
        if measured.dtype != dtype:
            st.caption(f"Its roofs were measured in {escaped(measured.dtype)}, not in {dtype}.")
        return ChosenDevice(ceilings=measured.ceilings, memory_bytes=measured.device.memory_bytes)
    sheet = find_datasheet(name)
    if name == OWN_RATES or sheet is None:
        return _own(prefix)
    if not sheet.peaks:
        return _without_a_rate(sheet, prefix)
    try:
        ceilings = datasheet_ceilings(sheet, dtype)
    except TokenByTokenError as error:
        st.error(escaped(str(error)))
        return None
    return ChosenDevice(ceilings=ceilings, memory_bytes=sheet.memory_bytes)


def _own(prefix: str) -> ChosenDevice:
    called = st.text_input("Name", max_chars=60, **bound(f"{prefix}-called"))
    gigabytes = st.number_input("Memory bandwidth, GB/s", 0.001, 1e6, **bound(f"{prefix}-gbs"))
    tflops = st.number_input("Matrix products, TFLOP/s", 0.001, 1e6, **bound(f"{prefix}-tflops"))
    return ChosenDevice(
        ceilings=entered_ceilings(tflops * TERA, gigabytes * GIGA, called or ""),
        memory_bytes=_memory(prefix),
    )


def _without_a_rate(sheet: Datasheet, prefix: str) -> ChosenDevice | None:
    """Ask for what the vendor does not state of a part whose bandwidth it does."""
    bandwidth = f"{sheet.bytes_per_s / GIGA:,g} GB/s"
    st.caption(
        f"{bandwidth} of memory bandwidth ({escaped(sheet.document)}). {escaped(sheet.note)}"
    )
    tflops = st.number_input("Matrix products, TFLOP/s", 0.0, 1e6, **bound(f"{prefix}-rate"))
    memory_bytes = sheet.memory_bytes or _memory(prefix)
    if not tflops:
        st.info("Enter its TFLOP/s, measured or estimated, to see counted times.")
        return None
    return ChosenDevice(ceilings=with_entered_rate(sheet, tflops * TERA), memory_bytes=memory_bytes)


def _memory(prefix: str) -> int | None:
    gibibytes = st.number_input(
        "Memory, GiB (0 = not known)", 0.0, 1e6, **bound(f"{prefix}-memory")
    )
    return round(gibibytes * GIBI) or None
