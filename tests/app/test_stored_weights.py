"""Tests of the choice between weights as published and in the number format, on What if."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def script() -> None:
    """Draw the choice for a shape whose weights are published in 8 bits, and say which it is."""
    from dataclasses import replace  # noqa: PLC0415  a script of its own

    import streamlit as st  # noqa: PLC0415  a script of its own

    from tests.builders import TINY_SHAPE  # noqa: PLC0415  a script of its own
    from visuals.pages.what_if import stored_shape  # noqa: PLC0415  a script of its own

    shape = replace(
        TINY_SHAPE, weight_bytes=2_000_000, published_weight_bytes=1_000_000, published_format="FP8"
    )
    st.write(str(stored_shape(shape, "bfloat16").weight_bytes))


@pytest.mark.app
def test_weights_as_published_are_the_default_and_16_bits_are_beside_them() -> None:
    page = AppTest.from_function(script).run()
    stored = page.selectbox(key="wi-stored")
    assert not page.exception
    assert stored.options[0].startswith("as published: FP8")
    assert stored.options[1].startswith("bfloat16")
    assert page.markdown[0].value == "1000000"

    stored.set_value(stored.options[1]).run()

    assert page.markdown[0].value == "2000000"
