"""Tests of the choice between weights as published and in the number format, on What if."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

SCRIPT = Path(__file__).with_name("stored_weights_script.py")


@pytest.mark.app
def test_weights_as_published_are_the_default_and_16_bits_are_beside_them() -> None:
    page = AppTest.from_file(SCRIPT).run()
    stored = page.selectbox(key="wi-stored")
    assert not page.exception
    assert stored.options[0].startswith("as published: FP8")
    assert stored.options[1].startswith("bfloat16")
    assert page.markdown[0].value == "1000000"

    stored.set_value(stored.options[1]).run()

    assert page.markdown[0].value == "2000000"
