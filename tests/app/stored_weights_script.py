"""Draws the choice for a shape whose weights are published in 8 bits, and says which it is."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from tests.builders import TINY_SHAPE
from visuals.pages.what_if import stored_shape

if __name__ == "__main__":  # processes that a test starts import this file anew
    shape = replace(
        TINY_SHAPE, weight_bytes=2_000_000, published_weight_bytes=1_000_000, published_format="FP8"
    )
    st.write(str(stored_shape(shape, "bfloat16").weight_bytes))
