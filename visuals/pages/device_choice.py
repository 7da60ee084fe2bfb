"""The choice of a device that something is counted on: a part, this machine, or one's own rates."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inference.counting.datasheets import device_ceilings, device_memory_bytes
from inference.counting.gpu_specs import PARTS
from inference.records.costs import Ceilings
from inference.records.errors import TokenByTokenError
from visuals.live.hub import Hub
from visuals.pages.markdown import escaped
from visuals.pages.session import bound

OWN_RATES = "two rates of my own \u2026"
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
    names = [part.name for part in PARTS] + ([THIS_MACHINE] if measured is not None else [])
    names.append(OWN_RATES)
    name = st.selectbox("Device", names, **bound(f"{prefix}-device", names)) or names[0]
    if name == THIS_MACHINE and measured is not None:
        if measured.dtype != dtype:
            st.caption(f"Its roofs were measured in {escaped(measured.dtype)}, not in {dtype}.")
        return ChosenDevice(ceilings=measured.ceilings, memory_bytes=measured.device.memory_bytes)
    if name == OWN_RATES:
        return _own(dtype, prefix)
    try:
        ceilings = device_ceilings(name, dtype)
    except TokenByTokenError as error:
        st.error(escaped(str(error)))
        return None
    return ChosenDevice(ceilings=ceilings, memory_bytes=device_memory_bytes(name))


def _own(dtype: str, prefix: str) -> ChosenDevice:
    tflops = st.number_input("Matrix products, TFLOP/s", 0.001, 1e6, **bound(f"{prefix}-tflops"))
    gigabytes = st.number_input("Memory bandwidth, GB/s", 0.001, 1e6, **bound(f"{prefix}-gbs"))
    gibibytes = st.number_input(
        "Memory, GiB (0 = not known)", 0.0, 1e6, **bound(f"{prefix}-memory")
    )
    return ChosenDevice(
        ceilings=device_ceilings(f"{tflops * TERA}:{gigabytes * GIGA}", dtype),
        memory_bytes=round(gibibytes * GIBI) or None,
    )
